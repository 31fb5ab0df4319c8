"""A parallel corpus as word ids on disk, and its links.

A side is a flat array with a record for each sentence: the other side's length, its own length, and the ids
of its words. So the words that a word can be linked with, and both lengths, lie next to each other.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from convs2s.base.compiled import compiled
from convs2s.base.files import SIDES, read_pairs
from convs2s.ids.flat_ids import FlatIds, Offsets

Ids = NDArray[np.int32]
Block = tuple[NDArray[np.integer[Any]], Offsets]
"""Consecutive sentences of a side: ids, and where each sentence begins, then the end."""

BLOCK = 1 << 13
"""Sentence pairs in memory at once."""
HEADER = 2


class Side(NamedTuple):
    """One side of a corpus; ids are from 0 to `vocabulary` - 1."""

    path: Path
    vocabulary: int
    words: int
    longest: int

    def records(self) -> Ids:
        """Memory-map the records."""
        return map_array(self.path, np.int32)


class Chunk(NamedTuple):
    """Consecutive pairs: the words of pair k are ids[offsets[k] : offsets[k + 1]] on either side."""

    source: Ids
    source_offsets: Offsets
    target: Ids
    target_offsets: Offsets


class Corpus(NamedTuple):
    """Both sides of a parallel corpus; if one side of a pair was empty, both are."""

    source: Side
    target: Side
    pairs: int

    def chunks(self) -> Iterator[Chunk]:
        """Yield all pairs in order, BLOCK at a time."""
        places = [0, 0]
        for first in range(0, self.pairs, BLOCK):
            arrays = []
            for number, side in enumerate(self[:2]):
                # Mapped anew each time, so that what has been read takes no memory.
                records = map_array(side.path, np.int32, places[number])
                offsets = np.zeros(min(BLOCK, self.pairs - first) + 1, np.int64)
                read_offsets(records, offsets)
                headers = offsets[:-1] + HEADER * np.arange(len(offsets) - 1)
                end = int(offsets[-1]) + HEADER * len(headers)
                arrays += [np.delete(records[:end], np.concatenate([headers, headers + 1])), offsets]
                places[number] += end
            yield Chunk(*arrays)

    def sentences(self) -> Iterator[tuple[list[int], list[int]]]:
        """Yield the ids of each pair."""
        for chunk in self.chunks():
            sides = (chunk.source, chunk.source_offsets), (chunk.target, chunk.target_offsets)
            split = ([part.tolist() for part in np.split(ids, offsets[1:-1])] for ids, offsets in sides)
            yield from zip(*split, strict=True)


class Links(NamedTuple):
    """Links of consecutive sentence pairs."""

    counts: Offsets
    """Of each pair."""
    positions: Ids
    """Rows of source and target position from 0, sorted within a pair; pairs follow each other."""

    def lists(self) -> Iterator[list[tuple[int, int]]]:
        """Yield the links of each pair."""
        ends = np.cumsum(self.counts)
        for first, last in zip((ends - self.counts).tolist(), ends.tolist(), strict=True):
            yield [(i, j) for i, j in self.positions[first:last].tolist()]


def pack_links(lists: Iterable[Sequence[tuple[int, int]]]) -> Iterator[Links]:
    """Yield the links of sentence pairs, BLOCK at a time."""
    stream = iter(lists)
    while block := list(islice(stream, BLOCK)):
        positions = np.array([link for links in block for link in links], np.int32).reshape(-1, 2)
        yield Links(np.array(list(map(len, block))), positions)


def map_array(path: Path, dtype: type[np.generic], begin: int = 0, end: int | None = None) -> NDArray[Any]:
    """Memory-map elements [begin, end) of a file, at least one; what is written there changes the file."""
    size = np.dtype(dtype).itemsize
    shape = None if end is None else (end - begin,)
    return np.asarray(np.memmap(path, dtype, "r+", begin * size, shape))


def number_words(source: Path, target: Path, folder: Path) -> tuple[Corpus, list[list[str]]]:
    """Number the words of two files that are aligned line by line, and write the numbers to `folder`.

    Returns:
        The corpus, and each side's words in the order of their numbers: by first occurrence.

    Raises:
        ValueError, FileNotFoundError: as `read_pairs`.
    """
    numbers = numbering(), numbering()

    def blocks() -> Iterator[tuple[Block, Block]]:
        pairs = read_pairs(source, target)
        while lines := list(islice(pairs, BLOCK)):
            words = [[line.split() for line in side] for side in zip(*lines, strict=True)]
            left, right = (number_block(*side) for side in zip(numbers, words, strict=True))
            yield left, right

    return write_corpus(blocks(), folder), [list(each) for each in numbers]


def numbering() -> defaultdict[str, int]:
    """Return a mapping that gives each new word the next number, from 0."""
    numbers: defaultdict[str, int] = defaultdict()
    numbers.default_factory = numbers.__len__
    return numbers


def number_block(number: defaultdict[str, int], sentences: list[list[str]]) -> Block:
    """Return the numbers of the words of some sentences."""
    ids = np.array([number[word] for words in sentences for word in words], np.int32)
    return ids, np.cumsum([0, *map(len, sentences)])


def copy_ids(source: FlatIds, target: FlatIds, folder: Path) -> Corpus:
    """Write encoded sentences to `folder`, without the EOS at the end of each."""
    ranges = ((first, min(first + BLOCK, len(source))) for first in range(0, len(source), BLOCK))
    return write_corpus(((without_eos(source, *ends), without_eos(target, *ends)) for ends in ranges), folder)


def without_eos(side: FlatIds, first: int, last: int) -> Block:
    """Return sentences [first, last) without their last ids."""
    ids, offsets = side.load(first, last)
    return np.delete(ids, offsets[1:] - 1), offsets - np.arange(len(offsets))


def write_corpus(blocks: Iterable[tuple[Block, Block]], folder: Path) -> Corpus:
    """Write blocks of source and target sentences to `folder`."""
    sides = [Side(folder / f"{side}.records", 1, 0, 0) for side in SIDES]
    pairs = 0
    with sides[0].path.open("wb") as source, sides[1].path.open("wb") as target:
        for block in blocks:
            pairs += len(block[0][1]) - 1
            for number, stream in enumerate((source, target)):
                (ids, own), (_, other) = block[number], block[1 - number]
                lengths = np.diff(own) * (np.diff(other) > 0)
                records = np.empty(lengths.sum() + HEADER * len(lengths), np.int32)
                write_records(ids, own, other, records)
                stream.write(records.tobytes())
                side = sides[number]
                sides[number] = Side(
                    side.path,
                    max(side.vocabulary, int(ids.max(initial=0)) + 1),
                    side.words + int(lengths.sum()),
                    max(side.longest, int(lengths.max(initial=0))),
                )
    return Corpus(sides[0], sides[1], pairs)


@compiled
def write_records(ids: NDArray[np.integer[Any]], own: Offsets, other: Offsets, records: Ids) -> None:
    """Write the records of a block of one side."""
    end = 0
    for k in range(len(own) - 1):
        length, others = own[k + 1] - own[k], other[k + 1] - other[k]
        if length == 0 or others == 0:
            length = others = 0
        records[end], records[end + 1] = others, length
        for i in range(length):
            records[end + HEADER + i] = ids[own[k] + i]
        end += HEADER + length


@compiled
def read_offsets(records: Ids, offsets: Offsets) -> None:
    """Write the cumulative lengths of the sentences of as many records."""
    for k in range(len(offsets) - 1):
        offsets[k + 1] = offsets[k] + records[offsets[k] + HEADER * k + 1]


@compiled
def take_next(stored: NDArray[Any], places: Offsets, words: Ids) -> Ids:
    """Return the element of `stored` at the place of each word, which then advances."""
    taken = np.empty(len(words), np.int32)
    for k in range(len(words)):
        taken[k] = stored[places[words[k]]]
        places[words[k]] += 1
    return taken
