"""Alignment candidates of source tokens, counted from links."""

from pathlib import Path

import numpy as np
import pytest

from convs2s.ids.candidates import (
    NO_CANDIDATES,
    Candidates,
    has_candidates,
    read_candidates,
    write_candidates,
)
from convs2s.ids.encoded import FlatIds
from convs2s.ids.vocabulary import EOS
from convs2s.text.alignment import link_counting, word_ids
from convs2s.text.alignment.link_counting import build_candidates
from convs2s.text.alignment.word_ids import Corpus, copy_ids
from tests.text.alignment.corpora import pack


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    """Return four encoded pairs."""
    return copy_ids(encode([3, 5], [3, 3], [], [5]), encode([9, 7], [9, 8], [4], [6]), tmp_path)


def encode(*sentences: list[int]) -> FlatIds:
    """Return sentences in memory, each followed by EOS."""
    rows = [[*sentence, EOS] for sentence in sentences]
    return FlatIds(np.array([i for row in rows for i in row], np.uint16), np.cumsum([0, *map(len, rows)]))


LINKS = [[(0, 0), (1, 1)], [(0, 0), (0, 1), (1, 0)], [], [(0, 0)]]
# Token 3 is linked with 9 three times, with 8 once; token 5 with 6 and 7 once each.


@pytest.mark.parametrize("held", [1, 1 << 22])
def test_candidates_are_ordered_by_frequency_then_by_id(
    corpus: Corpus, held: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By hand; the number of links that are counted at once must make no difference."""
    monkeypatch.setattr(link_counting, "HELD_LINKS", held)
    monkeypatch.setattr(word_ids, "BLOCK", 1)
    found = build_candidates(corpus, pack(LINKS), 10)
    assert found.offsets.tolist() == [0, 0, 0, 0, 2, 2, 4]
    assert found.targets.tolist() == [9, 8, 6, 7]
    kept = build_candidates(corpus, pack(LINKS), 1)
    assert (kept.offsets.tolist(), kept.targets.tolist()) == ([0, 0, 0, 0, 1, 1, 2], [9, 6])


def test_candidates_of_several_tokens_are_concatenated(corpus: Corpus, tmp_path: Path) -> None:
    """A token without candidates, or one that the alignment does not have, adds none."""
    found = build_candidates(corpus, pack(LINKS), 10)
    assert found.of(np.array([5, 4, 3, 999])).tolist() == [6, 7, 9, 8]
    assert NO_CANDIDATES.of(np.array([0, 5])).tolist() == []
    none = build_candidates(corpus, pack([[], [], [], []]), 10)
    assert (none.offsets.tolist(), none.targets.tolist()) == ([0], [])


def test_candidates_round_trip_and_equal_ones_give_equal_bytes(corpus: Corpus, tmp_path: Path) -> None:
    """DVC hashes the file, so its bytes must depend on the content alone."""
    candidates = build_candidates(corpus, pack(LINKS), 10)
    for name in ("a", "b"):
        write_candidates(tmp_path / name, candidates)
    found = read_candidates(tmp_path / "a")
    assert found.offsets.tolist() == candidates.offsets.tolist()
    assert found.targets.tolist() == candidates.targets.tolist()
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert has_candidates(tmp_path / "a")


def test_a_truncated_file_says_what_to_do_and_an_empty_one_that_it_is_empty(tmp_path: Path) -> None:
    """A pipeline without selection writes no candidates, which a model folder then leaves out."""
    path = tmp_path / "candidates.npz"
    write_candidates(path, Candidates(np.array([0, 1]), np.array([3], np.int32)))
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(ValueError, match=r"is damaged or not a file of candidates.*repro -f candidates"):
        read_candidates(path)
    write_candidates(path, NO_CANDIDATES)
    assert not has_candidates(path)
