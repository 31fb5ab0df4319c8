"""Translated words as lines of text."""

from pathlib import Path

from convs2s.decode.translations import one_line, write_text
from convs2s.text.words.tokenization import Tokenizer
from tests.decode.parrot import TOKENIZE


def test_only_line_ends_and_other_control_characters_are_removed() -> None:
    """A vocabulary may hold any of them, and a terminal obeys them; tabs, U+2028 and the like are text."""
    controls = [chr(code) for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) != "\t"]
    assert one_line("".join(controls)) == " " * 64
    assert one_line("a\tb\u2028\u200b\ufeffc\xa0d") == "a\tb\u2028\u200b\ufeffc\xa0d"


def test_a_sentence_is_written_both_ways(tmp_path: Path) -> None:
    """It is detokenized for people and sacreBLEU, and tokenized for multi-bleu; one line each."""
    write_text(tmp_path, "plain", [["Ein", "Haus", "."], [], ["a\nb"]], Tokenizer("de", TOKENIZE))
    assert (tmp_path / "plain.txt").read_text(encoding="utf-8") == "Ein Haus.\n\na b\n"
    assert (tmp_path / "plain.tok.txt").read_text(encoding="utf-8") == "Ein Haus .\n\na b\n"


def test_truecasing_is_undone_both_ways(tmp_path: Path) -> None:
    """Tokenized BLEU is case-sensitive as well, and its reference has capitals (T32)."""
    tokenizer = Tokenizer("en", TOKENIZE.model_copy(update={"truecase": True}))
    write_text(tmp_path, "plain", [["the", "cat", ".", "it"]], tokenizer)
    assert (tmp_path / "plain.txt").read_text(encoding="utf-8") == "The cat. It\n"
    assert (tmp_path / "plain.tok.txt").read_text(encoding="utf-8") == "The cat . It\n"
