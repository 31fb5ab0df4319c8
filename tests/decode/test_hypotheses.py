"""Hypotheses on disk."""

from pathlib import Path

import numpy as np
import pytest

from convs2s.decode.translations import Attention, Hypothesis, read_hypotheses, write_hypotheses
from convs2s.decode.unknown_replacement import Unknown

SENTENCE = (
    ["Wuffi", "\u2028", "\r", "ü"],
    [
        Hypothesis(["<unk>", "</s>"], ["<unk>"], -1.25, -0.625, [0, 3], [Unknown(0, 0, True)]),
        Hypothesis(["</s>"], [], -2.5, -2.5, [1], []),
    ],
)
EMPTY: tuple[list[str], list[Hypothesis]] = ([], [Hypothesis([], [], 0.0, 0.0, [], [])])


def test_hypotheses_round_trip(tmp_path: Path) -> None:
    """This includes characters that some programs treat as line ends."""
    path = tmp_path / "hypotheses.jsonl"
    write_hypotheses(path, [SENTENCE, EMPTY])
    assert list(read_hypotheses(path)) == [SENTENCE, EMPTY]
    assert path.read_bytes().count(b"\n") == 2


def test_scores_are_kept_to_four_decimals(tmp_path: Path) -> None:
    """Further digits depend on the number of threads, and DVC hashes the file."""
    path = tmp_path / "hypotheses.jsonl"
    write_hypotheses(path, [(["a"], [Hypothesis(["</s>"], [], -1.23456789, -0.123449, [0], [])])])
    [(_, [hypothesis])] = read_hypotheses(path)
    assert (hypothesis.log_likelihood, hypothesis.score) == (-1.2346, -0.1234)


@pytest.mark.parametrize(
    "line", ["{", "[]", "{}", '{"source": [], "hypotheses": []}', '{"source": [], "hypotheses": [{}]}']
)
def test_a_line_that_is_not_a_sentence_is_an_error(tmp_path: Path, line: str) -> None:
    """The message has its number."""
    path = tmp_path / "hypotheses.jsonl"
    write_hypotheses(path, [SENTENCE])
    path.write_text(path.read_text(encoding="utf-8") + line + "\n", encoding="utf-8")
    with pytest.raises(
        ValueError, match=r"hypotheses.jsonl, line 2: expected a line written by the stage translate, found"
    ):
        list(read_hypotheses(path))


def test_the_file_has_one_json_object_per_sentence(tmp_path: Path) -> None:
    """The bytes are exact; attention is in attention.npz instead."""
    path = tmp_path / "hypotheses.jsonl"
    attention = Attention(np.ones((1, 1), np.float32), ["</s>"], ["</s>"])
    best = Hypothesis(["ü", "</s>"], ["ü"], -1.0, -0.5, [0, 0], [Unknown(0, 0, True)], attention)
    write_hypotheses(path, [(["ü"], [best])])
    assert path.read_text(encoding="utf-8") == (
        '{"source": ["ü"], "hypotheses": [{"tokens": ["ü", "</s>"], "words": ["ü"], "log_likelihood": -1.0, '
        '"score": -0.5, "sources": [0, 0], "unknowns": [{"word": 0, "source": 0, "past_end": true}]}]}\n'
    )
