"""A parallel corpus as numbers on disk, for passes over it in chunks of bounded memory."""

from array import array
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from convs2s.text.corpus.files import read_pairs

Ids = NDArray[np.int32]
Offsets = NDArray[np.int64]

BLOCK = 16_384
"""Pairs whose lengths are looked at together."""


class Chunk(NamedTuple):
    """Consecutive pairs: the words of pair k are ids[offsets[k] : offsets[k + 1]] on either side."""

    source: Ids
    source_offsets: Offsets
    target: Ids
    target_offsets: Offsets

    def cells(self) -> Offsets:
        """Return where each pair's table of source words x target words begins; the end is the last."""
        sizes: Offsets = np.diff(self.source_offsets) * np.diff(self.target_offsets)
        return np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])


@dataclass(frozen=True)
class Side:
    """One side of the corpus: the ids of all its words in one file, where pairs begin in another."""

    ids: Path
    offsets: Path
    vocabulary: int
    """Number of different words; ids are in order of first occurrence."""
    words: int
    """Number of words."""

    def load(self, first: int, last: int) -> tuple[Ids, Offsets]:
        """Return the ids of pairs [first, last) and their offsets, which begin at 0."""
        offsets = np.fromfile(self.offsets, np.int64, last - first + 1, offset=8 * first)
        ids = np.fromfile(self.ids, np.int32, int(offsets[-1] - offsets[0]), offset=4 * int(offsets[0]))
        return ids, offsets - offsets[0]

    def lengths(self, first: int, last: int) -> Offsets:
        """Return the number of words of each of the pairs [first, last)."""
        offsets = np.fromfile(self.offsets, np.int64, last - first + 1, offset=8 * first)
        return offsets[1:] - offsets[:-1]

    def map(self) -> tuple[Ids, Offsets]:
        """Return all ids and offsets as memory-mapped arrays."""
        if self.words == 0:  # an empty file cannot be mapped
            return np.zeros(0, np.int32), np.fromfile(self.offsets, np.int64)
        ids = np.memmap(self.ids, np.int32, "c")
        return np.asarray(ids), np.asarray(np.memmap(self.offsets, np.int64, "c"))


@dataclass(frozen=True)
class Corpus:
    """A parallel corpus of `pairs` pairs; where one side was empty, both are."""

    source: Side
    target: Side
    pairs: int

    def load(self, first: int, last: int) -> Chunk:
        """Return pairs [first, last)."""
        return Chunk(*self.source.load(first, last), *self.target.load(first, last))

    def chunks(self, cells: int) -> Iterator[Chunk]:
        """Yield all pairs in order, in chunks of at most so many cells, but of one pair at least."""
        first = 0
        while first < self.pairs:
            last = min(first + BLOCK, self.pairs)
            sizes = self.source.lengths(first, last) * self.target.lengths(first, last)
            fitting = int(np.searchsorted(np.cumsum(sizes), cells, side="right"))
            yield self.load(first, first + max(1, fitting))
            first += max(1, fitting)

    def lengths(self) -> Offsets:
        """Return rows of source length, target length, number of pairs with both; none is empty."""
        counts: dict[tuple[int, int], int] = defaultdict(int)
        for first in range(0, self.pairs, BLOCK):
            last = min(first + BLOCK, self.pairs)
            both = np.stack([side.lengths(first, last) for side in (self.source, self.target)], axis=1)
            for (n, m), count in zip(*np.unique(both, axis=0, return_counts=True), strict=True):
                counts[int(n), int(m)] += int(count)
        rows = [(n, m, count) for (n, m), count in sorted(counts.items()) if n > 0]
        return np.array(rows, np.int64).reshape(-1, 3)


def encode(source: Path, target: Path, folder: Path) -> Corpus:
    """Number the words of two files, line i translating line i, and write the numbers to `folder`.

    Raises:
        ValueError, FileNotFoundError: as `read_pairs`.
    """
    pairs = 0
    with Writer(folder, "source") as left, Writer(folder, "target") as right:
        for source_line, target_line in read_pairs(source, target):
            source_words, target_words = source_line.split(), target_line.split()
            both = bool(source_words and target_words)
            left.add(source_words if both else [])
            right.add(target_words if both else [])
            pairs += 1
    return Corpus(left.side(), right.side(), pairs)


class Writer:
    """Writes one side of a corpus, some thousand pairs at a time."""

    def __init__(self, folder: Path, name: str) -> None:
        self.ids, self.offsets = folder / f"{name}.ids", folder / f"{name}.offsets"
        self.numbers = numbering()
        self.words = 0
        self.new_ids, self.new_offsets = array("i"), array("q", [0])

    def __enter__(self) -> Self:
        self.streams = self.ids.open("wb"), self.offsets.open("wb")
        return self

    def __exit__(self, *error: object) -> None:
        try:
            self.flush()
        finally:
            for stream in self.streams:
                stream.close()

    def add(self, words: list[str]) -> None:
        """Write the next pair's words."""
        self.new_ids.extend(map(self.numbers.__getitem__, words))
        self.words += len(words)
        self.new_offsets.append(self.words)
        if len(self.new_offsets) >= BLOCK:
            self.flush()

    def flush(self) -> None:
        """Write the buffered words."""
        for new, stream in zip((self.new_ids, self.new_offsets), self.streams, strict=True):
            new.tofile(stream)
            del new[:]

    def side(self) -> Side:
        """Return what was written."""
        return Side(self.ids, self.offsets, len(self.numbers), self.words)


def numbering() -> defaultdict[str, int]:
    """Return a mapping that gives each new word the next number, from 0."""
    numbers: defaultdict[str, int] = defaultdict()
    numbers.default_factory = numbers.__len__
    return numbers
