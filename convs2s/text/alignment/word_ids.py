"""A parallel corpus as word ids on disk, and its links."""

import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from convs2s.base.files import SIDES, read_pairs
from convs2s.ids.encoded import FlatIds, FlatIdsWriter, Ids, Offsets, open_array

BLOCK = 1 << 13
"""Sentence pairs in memory at once."""


class Sentences(NamedTuple):
    """Consecutive sentences of one side, without EOS."""

    ids: Ids
    """Of all sentences, concatenated."""
    lengths: Offsets
    """Words in each sentence."""


Block = tuple[Sentences, Sentences]
"""Consecutive sentences of the source, and their translations."""


class Corpus(NamedTuple):
    """Both sides of a parallel corpus; if one side of a pair was empty, both are."""

    source: FlatIds
    target: FlatIds

    def blocks(self) -> Iterator[tuple[FlatIds, FlatIds]]:
        """Yield all pairs in order, BLOCK at a time, read into memory."""
        for first in range(0, len(self.source), BLOCK):
            source, target = (FlatIds(*side.load(first, first + BLOCK)) for side in self)
            yield source, target

    def sentences(self) -> Iterator[tuple[list[int], list[int]]]:
        """Yield the ids of each pair."""
        for source, target in self.blocks():
            yield from ((source[k].tolist(), target[k].tolist()) for k in range(len(source)))


class Links(NamedTuple):
    """Links of consecutive sentence pairs."""

    counts: Offsets
    """Of each pair."""
    positions: NDArray[np.int32]
    """Rows of source and target position from 0, sorted within a pair; pairs follow each other."""

    def lists(self) -> Iterator[list[tuple[int, int]]]:
        """Yield the links of each pair."""
        for block in np.split(self.positions, np.cumsum(self.counts)[:-1]):
            yield [(i, j) for i, j in block.tolist()]


def pack_links(lists: Iterable[Sequence[tuple[int, int]]]) -> Iterator[Links]:
    """Yield the links of sentence pairs, BLOCK at a time."""
    stream = iter(lists)
    while block := list(itertools.islice(stream, BLOCK)):
        positions = np.array([link for links in block for link in links], np.int32).reshape(-1, 2)
        yield Links(np.array(list(map(len, block))), positions)


def number_words(source: Path, target: Path, folder: Path) -> tuple[Corpus, list[list[str]]]:
    """Number the words of two files that are aligned line by line, and write the numbers to `folder`.

    Returns:
        The corpus, and each side's words in the order of their numbers: by first occurrence.
    """
    # A word that is looked up for the first time gets the next number.
    numbers = [defaultdict[str, int](itertools.count().__next__) for _ in SIDES]

    def blocks() -> Iterator[Block]:
        """Yield the pairs as numbers; words get theirs on the way, so `numbers` is complete at the end."""
        pairs = read_pairs(source, target)
        while lines := list(itertools.islice(pairs, BLOCK)):
            sides = [[line.split() for line in side] for side in zip(*lines, strict=True)]
            left, right = map(number_block, numbers, sides)
            yield left, right

    return write_corpus(blocks(), folder), [list(number) for number in numbers]


def number_block(number: defaultdict[str, int], sentences: list[list[str]]) -> Sentences:
    """Return sentences with the number of each word."""
    ids = np.array([number[word] for words in sentences for word in words], np.int32)
    return Sentences(ids, np.array(list(map(len, sentences)), np.int64))


def copy_ids(source: FlatIds, target: FlatIds, folder: Path) -> Corpus:
    """Write encoded sentences to `folder`, without the EOS at the end of each."""
    blocks = Corpus(source, target).blocks()
    return write_corpus(((remove_eos(left), remove_eos(right)) for left, right in blocks), folder)


def remove_eos(sentences: FlatIds) -> Sentences:
    """Return sentences without the last id of each."""
    ids = np.delete(sentences.ids, sentences.offsets[1:] - 1)
    return Sentences(ids, np.diff(sentences.offsets) - 1)


def write_corpus(blocks: Iterable[Block], folder: Path) -> Corpus:
    """Write blocks of sentence pairs to `folder`; those with an empty side become empty on both."""
    with (
        FlatIdsWriter(folder, "source", np.int32) as source,
        FlatIdsWriter(folder, "target", np.int32) as target,
    ):
        for left, right in blocks:
            is_complete = (left.lengths > 0) & (right.lengths > 0)
            for writer, side in ((source, left), (target, right)):
                ids = side.ids[np.repeat(is_complete, side.lengths)]
                writer.append(ids, np.where(is_complete, side.lengths, 0))
    return Corpus(*(FlatIds(open_array(side.ids), open_array(side.offsets)) for side in (source, target)))
