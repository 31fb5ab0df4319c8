"""A corpus on disk is read back as it was written, in chunks of bounded size."""

from pathlib import Path

import numpy as np
import pytest

from convs2s.ids.encoded import FlatIds
from convs2s.ids.vocabulary import EOS
from convs2s.text.alignment import word_ids
from convs2s.text.alignment.word_ids import copy_ids, pack_links
from tests.text.alignment.corpora import number, unpack


@pytest.fixture(params=[1, 2, 4096])
def block(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Return the number of pairs that are in memory at once, which must make no difference."""
    monkeypatch.setattr(word_ids, "BLOCK", request.param)
    return int(request.param)


def test_words_are_numbered_by_first_occurrence(tmp_path: Path, block: int) -> None:
    """A pair with an empty side is empty on both: its words must not count, but it keeps its position."""
    corpus, words = number(tmp_path, [("b a b", "x"), ("", "y"), ("c", "z x"), ("  ", "z"), ("b", "")])
    assert list(corpus.sentences()) == [([0, 1, 0], [0]), ([], []), ([2], [2, 0]), ([], []), ([], [])]
    assert words == [["b", "a", "c"], ["x", "y", "z"]]
    assert corpus.source.offsets.tolist() == [0, 3, 3, 4, 4, 4]
    assert max(len(source) for source, _ in corpus.blocks()) <= block


def test_encoded_sentences_lose_their_eos(tmp_path: Path, block: int) -> None:
    """EOS would be linked with arbitrary words; other ids stay as they are."""
    source = FlatIds(np.array([3, 5, EOS, 9, EOS, EOS, 7, EOS], np.uint16), np.array([0, 3, 5, 6, 8]))
    target = FlatIds(np.array([4, EOS, 4, 6, EOS, 8, EOS, EOS], np.uint16), np.array([0, 2, 5, 7, 8]))
    corpus = copy_ids(source, target, tmp_path)
    assert list(corpus.sentences()) == [([3, 5], [4]), ([9], [4, 6]), ([], []), ([], [])]


def test_links_are_packed_and_unpacked(block: int) -> None:
    """Links of millions of pairs are kept as arrays; a pair without links keeps its place."""
    links = [[(0, 1), (2, 0)], [], [(1, 1)]]
    assert unpack(pack_links(links)) == links
    assert unpack(pack_links([])) == []
