"""A corpus on disk is read back as it was written, in chunks of bounded size."""

from pathlib import Path

import numpy as np
import pytest

from convs2s.text.alignment import word_ids
from convs2s.text.alignment.word_ids import Corpus, number_words


def numbered(folder: Path, source: str, target: str) -> Corpus:
    """Write and number a corpus."""
    (folder / "s").write_text(source, encoding="utf-8", newline="\n")
    (folder / "t").write_text(target, encoding="utf-8", newline="\n")
    return number_words(folder / "s", folder / "t", folder)


@pytest.mark.parametrize("block", [1, 2, 4096])
def test_words_are_numbered_by_first_occurrence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    """A pair with an empty side is empty on both: its words must not count, but it keeps its position."""
    monkeypatch.setattr(word_ids, "BLOCK", block)
    corpus = numbered(tmp_path, "b a b\n\nc\n  \nq\n", "x\ny\nz x\nz\n\n")
    assert corpus.source.ids.tolist() == [0, 1, 0, 2]
    assert corpus.source.offsets.tolist() == [0, 3, 3, 4, 4, 4]
    assert corpus.target.ids.tolist() == [0, 1, 0]
    assert corpus.target.offsets.tolist() == [0, 1, 1, 3, 3, 3]
    assert (corpus.source.vocabulary, corpus.target.vocabulary) == (3, 2)
    later = corpus.load(2, 4)
    assert (later.source.tolist(), later.source_offsets.tolist()) == ([2], [0, 1, 1])
    assert (later.target.tolist(), later.target_offsets.tolist()) == ([1, 0], [0, 2, 2])
    assert later.cells().tolist() == [0, 2, 2]


@pytest.mark.parametrize("cells", [1, 4, 5, 100])
def test_chunks_respect_the_limit_of_cells_and_cover_all_pairs(tmp_path: Path, cells: int) -> None:
    """A pair larger than the limit is a chunk of its own."""
    corpus = numbered(tmp_path, "a b\na\n\na b c\nb\n", "x y\nx\nx\ny z\nz\n")
    chunks = list(corpus.chunks(cells))
    assert np.concatenate([chunk.source for chunk in chunks]).tolist() == [0, 1, 0, 0, 1, 2, 1]
    assert sum(len(chunk.cells()) - 1 for chunk in chunks) == 5
    for chunk in chunks:
        assert chunk.cells()[-1] <= cells or len(chunk.cells()) == 2
