"""A parallel corpus as word ids on disk, for passes over it in chunks of bounded memory."""

from collections import defaultdict
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from convs2s.text.corpus.files import SIDES, read_pairs
from convs2s.text.corpus.flat_ids import FlatIds, FlatIdsWriter, Offsets

Ids = NDArray[np.int32]

BLOCK = 4096
"""Sentence pairs numbered together."""


class Chunk(NamedTuple):
    """Consecutive pairs: the words of pair k are ids[offsets[k] : offsets[k + 1]] on either side."""

    source: Ids
    source_offsets: Offsets
    target: Ids
    target_offsets: Offsets

    def cells(self) -> Offsets:
        """Return where each pair's table of source words x target words begins, followed by the end."""
        return np.insert(np.cumsum(np.diff(self.source_offsets) * np.diff(self.target_offsets)), 0, 0)


class Side(FlatIds):
    """One side of a corpus, memory-mapped; its `vocabulary` words are numbered by first occurrence."""

    def __init__(self, ids: Ids, offsets: Offsets, vocabulary: int) -> None:
        super().__init__(ids, offsets)
        self.vocabulary = vocabulary


class Corpus(NamedTuple):
    """Both sides of a parallel corpus; if one side of a pair was empty, both are."""

    source: Side
    target: Side

    def load(self, first: int, last: int) -> Chunk:
        """Return pairs [first, last)."""
        return Chunk(*self.source.load(first, last), *self.target.load(first, last))  # type: ignore[arg-type]

    def chunks(self, cells: int) -> Iterator[Chunk]:
        """Yield all pairs in order, in chunks of at most `cells` cells, but at least one pair."""
        for first, last in ranges(np.diff(self.source.offsets) * np.diff(self.target.offsets), cells):
            yield self.load(first, last)

    def length_counts(self) -> Offsets:
        """Return rows of source length, target length, number of such pairs, without empty pairs."""
        both = (np.diff(self.source.offsets) << 32) | np.diff(self.target.offsets)
        lengths, pairs = np.unique(both[both > 0], return_counts=True)
        return np.stack([lengths >> 32, lengths & 0xFFFFFFFF, pairs], axis=1)


def ranges(sizes: Offsets, most: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of consecutive items whose sizes add up to at most `most`, but at least one item."""
    ends = np.cumsum(sizes)
    first, before = 0, 0
    while first < len(sizes):
        last = max(first + 1, int(np.searchsorted(ends, before + most, side="right")))
        yield first, last
        first, before = last, int(ends[last - 1])


def number_words(source: Path, target: Path, folder: Path) -> Corpus:
    """Number the words of two files that are aligned line by line, and write the numbers to `folder`.

    Raises:
        ValueError, FileNotFoundError: as `read_pairs`.
    """
    numbers = numbering(), numbering()
    pairs = read_pairs(source, target)
    left, right = (FlatIdsWriter(folder, side, np.int32) for side in SIDES)
    with left, right:
        while block := list(islice(pairs, BLOCK)):
            words = [(one.split(), other.split()) for one, other in block]
            both = [pair if all(pair) else ([], []) for pair in words]
            for writer, number, sentences in zip(
                (left, right), numbers, zip(*both, strict=True), strict=True
            ):
                ids = [number[word] for sentence in sentences for word in sentence]
                writer.append(np.array(ids, np.int32), np.array(list(map(len, sentences)), np.int64))
    return Corpus(
        *(open_side(writer, len(words)) for writer, words in zip((left, right), numbers, strict=True))
    )


def open_side(writer: FlatIdsWriter, vocabulary: int) -> Side:
    """Return the side that was written."""
    # Copy on write, because compiled functions take writable arrays.
    ids, offsets = (np.asarray(np.load(path, mmap_mode="c")) for path in (writer.ids, writer.offsets))
    return Side(ids, offsets, vocabulary)


def numbering() -> defaultdict[str, int]:
    """Return a mapping that gives each new word the next number, from 0."""
    numbers: defaultdict[str, int] = defaultdict()
    numbers.default_factory = numbers.__len__
    return numbers
