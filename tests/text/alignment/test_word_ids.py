"""A corpus on disk is read back as it was written, in chunks of bounded size."""

from pathlib import Path

import numpy as np
import pytest

from convs2s.text.alignment import word_ids
from convs2s.text.alignment.word_ids import Corpus, number_ids, number_words, numbering
from convs2s.text.corpus.flat_ids import FlatIds


def encoded(folder: Path, source: str, target: str) -> Corpus:
    """Write and encode a corpus."""
    (folder / "s").write_text(source, encoding="utf-8", newline="\n")
    (folder / "t").write_text(target, encoding="utf-8", newline="\n")
    return number_words(folder / "s", folder / "t", folder)


def test_words_are_numbered_by_first_occurrence(tmp_path: Path) -> None:
    """The same text gives the same numbers, which determine the table's layout."""
    corpus = encoded(tmp_path, "b a b\nc\n", "x\ny x\n")
    chunk = corpus.load(0, 2)
    assert chunk.source.tolist() == [0, 1, 0, 2]
    assert chunk.source_offsets.tolist() == [0, 3, 4]
    assert chunk.target.tolist() == [0, 1, 0]
    assert chunk.cells().tolist() == [0, 3, 5]
    assert (corpus.source.vocabulary, corpus.target.vocabulary) == (3, 2)
    assert (corpus.source.words, corpus.target.words) == (4, 3)


def test_a_later_chunk_begins_at_zero(tmp_path: Path) -> None:
    """Each chunk is processed by itself, whatever came before."""
    chunk = encoded(tmp_path, "b a b\nc\n", "x\ny x\n").load(1, 2)
    assert (chunk.source.tolist(), chunk.source_offsets.tolist()) == ([2], [0, 1])
    assert (chunk.target.tolist(), chunk.target_offsets.tolist()) == ([1, 0], [0, 2])


def test_a_pair_with_an_empty_side_is_empty_on_both(tmp_path: Path) -> None:
    """Its words have no partners and must not count, but the pair keeps its position."""
    corpus = encoded(tmp_path, "a\n\n  \nb\n", "x\ny\nz\n\n")
    assert corpus.pairs == 4
    assert corpus.load(0, 4).source_offsets.tolist() == [0, 1, 1, 1, 1]
    assert corpus.load(0, 4).target_offsets.tolist() == [0, 1, 1, 1, 1]
    assert (corpus.source.vocabulary, corpus.target.vocabulary) == (1, 1)


@pytest.mark.parametrize(("source", "target", "pairs"), [("", "", 0), ("\n", "x\n", 1)])
def test_a_corpus_without_words_can_be_read(tmp_path: Path, source: str, target: str, pairs: int) -> None:
    """An empty file cannot be memory-mapped, but is not an error."""
    corpus = encoded(tmp_path, source, target)
    assert [array.tolist() for array in corpus.source.map()] == [[], [0] * (pairs + 1)]
    assert corpus.lengths().shape == (0, 3)
    assert sum(len(chunk.source) for chunk in corpus.chunks(10)) == 0


@pytest.mark.parametrize("block", [1, 2, 16_384])
@pytest.mark.parametrize("cells", [1, 4, 5, 100])
def test_chunks_respect_the_limit_of_cells_and_cover_all_pairs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cells: int, block: int
) -> None:
    """A pair larger than the limit is a chunk of its own."""
    monkeypatch.setattr(word_ids, "BLOCK", block)
    corpus = encoded(tmp_path, "a b\na\n\na b c\nb\n", "x y\nx\nx\ny z\nz\n")
    chunks = list(corpus.chunks(cells))
    assert np.concatenate([chunk.source for chunk in chunks]).tolist() == [0, 1, 0, 0, 1, 2, 1]
    assert sum(len(chunk.cells()) - 1 for chunk in chunks) == 5
    for chunk in chunks:
        assert chunk.cells()[-1] <= cells or len(chunk.cells()) == 2


def test_lengths_are_counted_together(tmp_path: Path) -> None:
    """The tension is fitted over pairs of lengths rather than over sentences."""
    corpus = encoded(tmp_path, "a\nb\na b\n\n", "x y\ny y\nx\nx\n")
    assert corpus.lengths().tolist() == [[1, 2, 2], [2, 1, 1]]


def test_ids_are_memory_mapped_as_written(tmp_path: Path) -> None:
    """The table needs random access to the whole corpus, which may not fit in memory."""
    ids, offsets = encoded(tmp_path, "b a\nb\n", "x\ny\n").source.map()
    assert (ids.tolist(), offsets.tolist()) == ([0, 1, 0], [0, 2, 3])


def test_files_of_different_length_are_an_error(tmp_path: Path) -> None:
    """After a missing line, every sentence would be aligned with the wrong one."""
    with pytest.raises(ValueError, match=r"s has 2 lines but .*t has 1"):
        encoded(tmp_path, "a\nb\n", "x\n")


def test_numbering_gives_each_new_word_the_next_number() -> None:
    """A known word keeps its number."""
    numbers = numbering()
    assert [numbers[word] for word in ("b", "a", "b", "c")] == [0, 1, 0, 2]


def test_ids_are_numbered_as_their_decimal_text_would_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """EOS (1) is left out, and if one side is empty, both are; links depend on the numbering."""
    monkeypatch.setattr(word_ids, "BLOCK", 2)
    rows = ([[9, 7, 9, 1], [1], [4, 7, 1], [5, 1], [9, 3, 1]], [[8, 1], [6, 8, 1], [6, 5, 1], [1], [8, 4, 1]])
    sides = []
    for name, side in zip("st", rows, strict=True):
        offsets = np.cumsum([0, *map(len, side)])
        sides.append(FlatIds(np.array([i for row in side for i in row], np.uint16), offsets))
        lines = "".join(" ".join(map(str, row[:-1])) + "\n" for row in side)
        (tmp_path / name).write_text(lines, encoding="utf-8")
    folders = tmp_path / "words", tmp_path / "ids"
    for folder in folders:
        folder.mkdir()
    wanted = number_words(tmp_path / "s", tmp_path / "t", folders[0])
    found = number_ids(sides[0], sides[1], folders[1])
    assert found.pairs == wanted.pairs == 5
    for one, other in ((found.source, wanted.source), (found.target, wanted.target)):
        assert one.vocabulary == other.vocabulary
        for i in (0, 1):
            assert one.map()[i].dtype == other.map()[i].dtype
            assert one.map()[i].tolist() == other.map()[i].tolist()
    assert found.source.map()[0].tolist() == [0, 1, 0, 2, 1, 0, 3]
