"""Hypotheses and attention on disk."""

from pathlib import Path

import numpy as np
import pytest

from convs2s.decode.hypotheses import (
    Attention,
    Sentence,
    TextHypothesis,
    read_attention,
    read_hypotheses,
    write_attention,
    write_hypotheses,
)
from convs2s.decode.unknown_replacement import Unknown

SENTENCE = Sentence(
    ["Wuffi", "\u2028", "\r", "ü"],
    [
        TextHypothesis(["<unk>", "</s>"], ["<unk>"], -1.25, -0.625, [0, 3], [Unknown(0, 0, True)]),
        TextHypothesis(["</s>"], [], -2.5, -2.5, [1], []),
    ],
)
EMPTY = Sentence([], [TextHypothesis([], [], 0.0, 0.0, [], [])])


def attention() -> list[Attention]:
    return [
        Attention(
            np.array([[0.25, 0.75], [0.5, 0.5], [1, 0]], np.float32), ["ü▁", "</s>"], ["a", "\n", "</s>"]
        ),
        Attention(np.zeros((0, 0), np.float32), [], []),
        Attention(np.array([[1]], np.float32), ["</s>"], ["</s>"]),
    ]


def test_hypotheses_come_back_as_they_were(tmp_path: Path) -> None:
    """Also with characters that some would take for line ends."""
    path = tmp_path / "hypotheses.jsonl"
    write_hypotheses(path, [SENTENCE, EMPTY])
    assert list(read_hypotheses(path)) == [SENTENCE, EMPTY]
    assert path.read_bytes().count(b"\n") == 2


def test_scores_are_kept_to_four_decimals(tmp_path: Path) -> None:
    """The digits behind depend on how many threads add up, and DVC hashes the file."""
    path = tmp_path / "hypotheses.jsonl"
    write_hypotheses(path, [Sentence(["a"], [TextHypothesis(["</s>"], [], -1.23456789, -0.123449, [0], [])])])
    [sentence] = read_hypotheses(path)
    assert (sentence.hypotheses[0].log_likelihood, sentence.hypotheses[0].score) == (-1.2346, -0.1234)


@pytest.mark.parametrize(
    "line", ["{", "[]", "{}", '{"source": [], "hypotheses": []}', '{"source": [], "hypotheses": [{}]}']
)
def test_a_line_that_is_no_sentence_is_named(tmp_path: Path, line: str) -> None:
    """With its number, so that it can be looked at."""
    path = tmp_path / "hypotheses.jsonl"
    write_hypotheses(path, [SENTENCE])
    path.write_text(path.read_text(encoding="utf-8") + line + "\n", encoding="utf-8")
    with pytest.raises(
        ValueError, match=r"hypotheses.jsonl, line 2: found no sentence .* run that stage again"
    ):
        list(read_hypotheses(path))


def test_attention_comes_back_as_it_was(tmp_path: Path) -> None:
    """These weights are exact in float16."""
    write_attention(tmp_path / "attention.npz", attention())
    back = read_attention(tmp_path / "attention.npz")
    for before, after in zip(attention(), back, strict=True):
        np.testing.assert_array_equal(before.weights, after.weights)
        assert (before.source, before.target) == (after.source, after.target)
        assert after.weights.dtype == np.float16


def test_no_attention_is_no_fault(tmp_path: Path) -> None:
    """The ensemble of a single seed has none."""
    write_attention(tmp_path / "attention.npz", [])
    assert read_attention(tmp_path / "attention.npz") == []


def test_attention_has_the_same_bytes_every_time(tmp_path: Path) -> None:
    """No date may stand in the archive, since DVC hashes it."""
    for name in ("a.npz", "b.npz"):
        write_attention(tmp_path / name, attention())
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    assert b"\x00\x00\x21\x00" in (tmp_path / "a.npz").read_bytes()  # 0:00 on 1 January 1980


def test_attention_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    """Missing, or damaged in one of several ways."""
    path = tmp_path / "attention.npz"
    with pytest.raises(FileNotFoundError, match=r"attention.npz does not exist. The stage translate writes"):
        read_attention(path)
    write_attention(path, attention())
    whole = path.read_bytes()
    np.savez(tmp_path / "other.npz", numbers=np.zeros(3))
    for content in (b"", b"no archive", whole[: len(whole) // 2], (tmp_path / "other.npz").read_bytes()):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"attention.npz is no attention file .* run that stage again"):
            read_attention(path)
