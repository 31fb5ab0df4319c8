"""Translated words as lines of text."""

from pathlib import Path

from convs2s.decode.plain_text import one_line, write_text
from convs2s.text.words.tokenization import Tokenizer
from tests.decode.parrot import TOKENIZE


def test_only_line_ends_are_removed() -> None:
    r"""Readers here split at \n and strip \r; U+2028 and the like are text."""
    assert one_line("a\nb\rc\u2028d\x0be") == "a b c\u2028d\x0be"


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
