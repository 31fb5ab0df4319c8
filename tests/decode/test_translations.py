"""Translations in words, and their files."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from convs2s.decode.translations import (
    Attention,
    Hypothesis,
    one_line,
    read_attention,
    read_hypotheses,
    write_attention,
    write_hypotheses,
    write_text,
)
from convs2s.decode.unknown_replacement import Unknown
from convs2s.text.words.tokenization import Tokenizer
from tests.decode.parrot import TOKENIZE

SENTENCE = (
    ["Wuffi", "\u2028", "\r", "ü"],
    [
        Hypothesis(["<unk>", "</s>"], ["<unk>"], -1.25, -0.625, [0, 3], [Unknown(0, 0, True)]),
        Hypothesis(["</s>"], [], -2.5, -2.5, [1], []),
    ],
)
EMPTY: tuple[list[str], list[Hypothesis]] = ([], [Hypothesis([], [], 0.0, 0.0, [], [])])


def test_hypotheses_round_trip_as_one_json_object_per_sentence(tmp_path: Path) -> None:
    """This includes characters that some programs treat as line ends; the bytes are exact, without attention.

    Scores have four decimals.
    """
    path = tmp_path / "hypotheses.jsonl"
    rounded = Hypothesis(["ü", "</s>"], ["ü"], -1.0, -0.5, [0, 0], [Unknown(0, 0, True)])
    heat = Attention(np.ones((1, 1), np.float32), ["</s>"], ["</s>"])
    exact = replace(rounded, log_likelihood=-1.00004, score=-0.50002, attention=heat)
    write_hypotheses(path, [SENTENCE, EMPTY, (["ü"], [exact])])
    assert list(read_hypotheses(path)) == [SENTENCE, EMPTY, (["ü"], [rounded])]
    assert path.read_text(encoding="utf-8").split("\n")[2:] == [
        '{"source": ["ü"], "hypotheses": [{"tokens": ["ü", "</s>"], "words": ["ü"], "log_likelihood": -1.0, '
        '"score": -0.5, "sources": [0, 0], "unknowns": [{"word": 0, "source": 0, "past_end": true}]}]}',
        "",
    ]


def attention() -> list[Attention]:
    return [
        Attention(
            np.array([[0.25, 0.75], [0.5, 0.5], [1, 0]], np.float32), ["ü▁", "</s>"], ["a", "\n", "</s>"]
        ),
        Attention(np.zeros((0, 0), np.float32), [], []),
        Attention(np.array([[1]], np.float32), ["</s>"], ["</s>"]),
    ]


def test_attention_round_trips(tmp_path: Path) -> None:
    """These weights are exact in float16. DVC hashes the archive, so it must not contain a date."""
    path = tmp_path / "attention.npz"
    write_attention(path, attention())
    for before, after in zip(attention(), read_attention(path), strict=True):
        np.testing.assert_array_equal(before.weights, after.weights)
        assert (before.source, before.target) == (after.source, after.target)
        assert after.weights.dtype == np.float16
    assert b"\x00\x00\x21\x00" in path.read_bytes()  # 0:00 on 1 January 1980


def test_only_line_ends_and_other_control_characters_are_removed() -> None:
    """A vocabulary may hold any of them, and a terminal obeys them; tabs, U+2028 and the like are text."""
    controls = [chr(code) for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) != "\t"]
    assert one_line("".join(controls)) == " " * 64
    assert one_line("a\tb\u2028\u200b\ufeffc\xa0d") == "a\tb\u2028\u200b\ufeffc\xa0d"


def test_a_sentence_is_written_both_ways(tmp_path: Path) -> None:
    """Detokenized for people and sacreBLEU, tokenized for multi-bleu, both with capitals (T32)."""
    tokenizer = Tokenizer("en", TOKENIZE.model_copy(update={"truecase": True}))
    write_text(tmp_path, "plain", [["the", "cat", ".", "it"], [], ["a\x1b[2Jb"]], tokenizer)
    assert (tmp_path / "plain.txt").read_text(encoding="utf-8") == "The cat. It\n\nA [2Jb\n"
    assert (tmp_path / "plain.tok.txt").read_text(encoding="utf-8") == "The cat . It\n\nA [2Jb\n"
