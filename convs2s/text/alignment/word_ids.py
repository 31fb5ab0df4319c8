"""A parallel corpus as word ids on disk, for passes over it in chunks of bounded memory."""

from array import array
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from convs2s.text.corpus.files import read_pairs
from convs2s.text.corpus.flat_ids import FlatIds, FlatIdsWriter, Offsets

Ids = NDArray[np.int32]

BLOCK = 16_384
"""Sentence pairs processed together."""


class Chunk(NamedTuple):
    """Consecutive pairs: the words of pair k are ids[offsets[k] : offsets[k + 1]] on either side."""

    source: Ids
    source_offsets: Offsets
    target: Ids
    target_offsets: Offsets

    def cells(self) -> Offsets:
        """Return where each pair's table of source words x target words begins, followed by the end."""
        sizes: Offsets = np.diff(self.source_offsets) * np.diff(self.target_offsets)
        return np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])


@dataclass(frozen=True)
class Side:
    """One side of the corpus, memory-mapped."""

    sentences: FlatIds
    vocabulary: int
    """Number of distinct words; ids are in order of first occurrence."""

    @property
    def words(self) -> int:
        """Number of words."""
        return len(self.sentences.ids)

    def load(self, first: int, last: int) -> tuple[Ids, Offsets]:
        """Return the ids of pairs [first, last) and their offsets, starting at 0."""
        ids, offsets = self.sentences.load(first, last)
        return ids.astype(np.int32, copy=False), offsets

    def lengths(self, first: int, last: int) -> Offsets:
        """Return the number of words of each of the pairs [first, last)."""
        offsets = np.asarray(self.sentences.offsets[first : last + 1])
        return offsets[1:] - offsets[:-1]

    def map(self) -> tuple[Ids, Offsets]:
        """Return all ids and offsets as memory-mapped arrays."""
        return np.asarray(self.sentences.ids), np.asarray(self.sentences.offsets)


@dataclass(frozen=True)
class Corpus:
    """A parallel corpus of `pairs` pairs; if one side of a pair was empty, both are."""

    source: Side
    target: Side
    pairs: int

    def load(self, first: int, last: int) -> Chunk:
        """Return pairs [first, last)."""
        return Chunk(*self.source.load(first, last), *self.target.load(first, last))

    def chunks(self, cells: int) -> Iterator[Chunk]:
        """Yield all pairs in order, in chunks of at most `cells` cells, but at least one pair."""
        first = 0
        while first < self.pairs:
            last = min(first + BLOCK, self.pairs)
            sizes = self.source.lengths(first, last) * self.target.lengths(first, last)
            fitting = int(np.searchsorted(np.cumsum(sizes), cells, side="right"))
            yield self.load(first, first + max(1, fitting))
            first += max(1, fitting)

    def lengths(self) -> Offsets:
        """Return rows of source length, target length, number of such pairs, without empty pairs."""
        counts: dict[tuple[int, int], int] = defaultdict(int)
        for first in range(0, self.pairs, BLOCK):
            last = min(first + BLOCK, self.pairs)
            both = np.stack([side.lengths(first, last) for side in (self.source, self.target)], axis=1)
            for (n, m), count in zip(*np.unique(both, axis=0, return_counts=True), strict=True):
                counts[int(n), int(m)] += int(count)
        rows = [(n, m, count) for (n, m), count in sorted(counts.items()) if n > 0]
        return np.array(rows, np.int64).reshape(-1, 3)


def number_words(source: Path, target: Path, folder: Path) -> Corpus:
    """Number the words of two files that are aligned line by line, and write the numbers to `folder`.

    Raises:
        ValueError, FileNotFoundError: as `read_pairs`.
    """
    pairs = 0
    with WordWriter(folder, "source") as left, WordWriter(folder, "target") as right:
        for source_line, target_line in read_pairs(source, target):
            source_words, target_words = source_line.split(), target_line.split()
            both = bool(source_words and target_words)
            left.add(source_words if both else [])
            right.add(target_words if both else [])
            pairs += 1
    return Corpus(left.side(), right.side(), pairs)


def number_ids(source: FlatIds, target: FlatIds, folder: Path) -> Corpus:
    """Number the ids of encoded sentences as if they were words, without EOS; write like `number_words`."""
    with IdWriter(folder, "source") as left, IdWriter(folder, "target") as right:
        for first in range(0, len(source), BLOCK):
            last = min(first + BLOCK, len(source))
            chunks = source.load(first, last), target.load(first, last)
            both = np.logical_and(*(np.diff(offsets) > 1 for _, offsets in chunks))
            left.add(*chunks[0], both)
            right.add(*chunks[1], both)
    return Corpus(left.side(), right.side(), len(source))


class SideWriter:
    """Writes the word numbers of one side of a corpus."""

    def __init__(self, folder: Path, name: str) -> None:
        self.writer = FlatIdsWriter(folder, name, np.int32)
        self.vocabulary = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.writer.__exit__(*error)

    def side(self) -> Side:
        """Return the side that was written."""
        # Copy on write, because compiled functions take writable arrays.
        ids, offsets = (np.load(path, mmap_mode="c") for path in (self.writer.ids, self.writer.offsets))
        return Side(FlatIds(ids, offsets), self.vocabulary)


class WordWriter(SideWriter):
    """Numbers words, buffering several thousand pairs at a time."""

    def __init__(self, folder: Path, name: str) -> None:
        super().__init__(folder, name)
        self.numbers = numbering()
        self.new_ids, self.new_lengths = array("i"), array("q")

    def __exit__(self, *error: object) -> None:
        try:
            self.flush()
        finally:
            super().__exit__(*error)

    def add(self, words: list[str]) -> None:
        """Write the next pair's words."""
        self.new_ids.extend(map(self.numbers.__getitem__, words))
        self.new_lengths.append(len(words))
        if len(self.new_lengths) >= BLOCK:
            self.flush()

    def flush(self) -> None:
        """Write the buffered words."""
        self.writer.append(np.array(self.new_ids, np.int32), np.array(self.new_lengths, np.int64))
        self.vocabulary = len(self.numbers)
        self.new_ids, self.new_lengths = array("i"), array("q")


class IdWriter(SideWriter):
    """Renumbers ids by first occurrence, as for words, because the aligner's sums depend on the order."""

    def __init__(self, folder: Path, name: str) -> None:
        super().__init__(folder, name)
        self.numbers = np.zeros(0, np.int32)  # the number of each id; -1 if it has none yet

    def add(self, ids: NDArray[np.integer], offsets: Offsets, kept: NDArray[np.bool_]) -> None:
        """Write sentences without their final EOS; those not kept become empty."""
        lengths = np.diff(offsets)
        within = np.repeat(kept, lengths)
        within[offsets[1:] - 1] = False
        chosen = ids[within]
        missing = (int(chosen.max()) + 1 if len(chosen) else 0) - len(self.numbers)
        self.numbers = np.append(self.numbers, np.full(max(missing, 0), -1, np.int32))
        new, first = np.unique(chosen[self.numbers[chosen] < 0], return_index=True)
        self.numbers[new[np.argsort(first)]] = self.vocabulary + np.arange(len(new))
        self.vocabulary += len(new)
        self.writer.append(self.numbers[chosen], np.where(kept, lengths - 1, 0))


def numbering() -> defaultdict[str, int]:
    """Return a mapping that gives each new word the next number, from 0."""
    numbers: defaultdict[str, int] = defaultdict()
    numbers.default_factory = numbers.__len__
    return numbers
