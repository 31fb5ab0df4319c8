"""A table on disk of the probabilities that a given word generates another, with a row per generated word.

A row has a value for each distinct given word that occurs with the generated word in a sentence pair, in the
order of first occurrence. The words themselves are not stored: who goes through the sentences of a generated
word meets them in this order. So a pair of words takes 4 bytes of disk, and only a few rows are in memory.
"""

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from convs2s.base.compiled import compiled
from convs2s.base.parallel import Threads
from convs2s.ids.flat_ids import Offsets
from convs2s.text.alignment.word_ids import HEADER, Ids, Side, map_array

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
Result = TypeVar("Result")

BATCH_WORDS = 1 << 25
"""Occurrences of generated words whose rows are in memory at once: 8 bytes each, 100 with values."""
POSITION_BITS = 24
ALPHA = 0.01
"""Pseudo-count of variational Bayes, for each pair of words (Dyer et al., 2013)."""
FLOOR = 1.2e-38
"""Lowest probability: float32 cannot hold less in full precision, and no sum may become 0."""


class Rows(NamedTuple):
    """The rows of consecutive generated words, from word `first`."""

    first: int
    places: Offsets
    """Word first + r has the occurrences places[r] to places[r + 1], in the order of the corpus."""
    occurrences: Offsets
    """The given sentence's index in the records << POSITION_BITS | position of the generated word from 0."""
    starts: Offsets
    """Word first + r has the values starts[r] to starts[r + 1]."""
    values: Floats


class Table:
    """The rows of all generated words, in two files."""

    def __init__(self, folder: Path, given: Side, generated: Side, threads: Threads) -> None:
        """List the occurrences and count the values, but do not write those yet."""
        folder.mkdir()
        self.given, self.generated, self.threads = given, generated, threads
        self.occurrences, self.values = folder / "occurrences", folder / "values"
        frequencies = np.zeros(generated.vocabulary, np.int64)
        count_words(generated.records(), frequencies)
        self.places = np.insert(np.cumsum(frequencies), 0, 0)
        most = min(BATCH_WORDS, generated.words // 4 + 1) // threads.count
        batches = (slice(*ends) for ends in ranges(frequencies, most))
        self.batches = [batch for batch in batches if frequencies[batch].any()]
        self.occurrences.touch()
        sizes = np.zeros(generated.vocabulary, np.int64)
        for batch, found in zip(self.batches, threads.map(self.list_occurrences, self.batches), strict=True):
            sizes[batch] = found
        self.starts = np.insert(np.cumsum(sizes), 0, 0)

    def list_occurrences(self, batch: slice) -> Offsets:
        """Write the occurrences of a batch of words; return the number of values of each."""
        places = self.places[batch.start : batch.stop + 1] - self.places[batch.start]
        occurrences = np.empty(places[-1], np.int64)
        given = self.given.records()
        gather(self.generated.records(), batch.start, places.copy(), occurrences)
        write_at(self.occurrences, int(self.places[batch.start]), occurrences)
        return count_values(places, occurrences, given, self.given.vocabulary)

    def write_values(self) -> None:
        """Write a value of 1 for each distinct pair of words."""
        with self.values.open("wb") as stream:
            for batch in self.batches:
                stream.write(
                    np.ones(self.starts[batch.stop] - self.starts[batch.start], np.float32).tobytes()
                )

    def map(self, function: Callable[[Rows], Result]) -> Iterator[Result]:
        """Yield the results of a function of rows, for all rows that have occurrences."""

        def call(batch: slice) -> Result:
            ends = slice(batch.start, batch.stop + 1)
            places, starts = self.places[ends], self.starts[ends]
            occurrences = map_array(self.occurrences, np.int64, places[0], places[-1])
            values = map_array(self.values, np.float32, starts[0], starts[-1])
            return function(Rows(batch.start, places - places[0], occurrences, starts - starts[0], values))

        return self.threads.map(call, self.batches)


def ranges(sizes: Offsets, most: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of consecutive items whose sizes add up to at most `most`, but at least one item."""
    ends = np.cumsum(sizes)
    first, before = 0, 0
    while first < len(sizes):
        last = max(first + 1, int(np.searchsorted(ends, before + most, side="right")))
        yield first, last
        first, before = last, int(ends[last - 1])


def write_at(path: Path, place: int, values: NDArray[Any]) -> None:
    """Write elements to a file, beginning with element `place`."""
    with path.open("r+b") as stream:
        stream.seek(place * values.itemsize)
        stream.write(values.data)


@compiled
def count_words(records: Ids, frequencies: Offsets) -> None:
    """Write the number of occurrences of each word of one side."""
    place = 0
    while place < len(records):
        end = place + HEADER + records[place + 1]
        for word in records[place + HEADER : end]:
            frequencies[word] += 1
        place = end


@compiled
def gather(records: Ids, first: int, places: Offsets, occurrences: Offsets) -> None:
    """List the occurrences of the words first + r in `occurrences`, from places[r]; changes `places`."""
    own, given = 0, 0
    last = first + len(places) - 1
    while own < len(records):
        for j in range(records[own + 1]):
            word = records[own + HEADER + j]
            if first <= word < last:
                occurrences[places[word - first]] = (given << POSITION_BITS) | j
                places[word - first] += 1
        given += HEADER + records[own]
        own += HEADER + records[own + 1]


@compiled
def count_values(places: Offsets, occurrences: Offsets, given: Ids, vocabulary: int) -> Offsets:
    """Return the number of distinct given words that occur with each generated word."""
    sizes = np.zeros(len(places) - 1, np.int64)
    seen = np.full(vocabulary, -1, np.int32)  # the last row that has this given word
    for r in range(len(sizes)):
        for occurrence in occurrences[places[r] : places[r + 1]]:
            record = occurrence >> POSITION_BITS
            for word in given[record + HEADER : record + HEADER + given[record + 1]]:
                if seen[word] != r:
                    seen[word] = r
                    sizes[r] += 1
    return sizes


@compiled
def digamma(x: float) -> float:
    """Return the derivative of log(gamma(x)) for x > 0, to about 1e-12 (Abramowitz & Stegun 6.3.18)."""
    shift = 0.0
    while x < 10.0:  # where the series below is not yet exact: digamma(x) = digamma(x + 2) - 1/x - 1/(x + 1)
        shift += (2.0 * x + 1.0) / (x * (x + 1.0))
        x += 2.0
    y = 1.0 / (x * x)
    series = y * (1 / 12 - y * (1 / 120 - y * (1 / 252 - y * (1 / 240 - y / 132))))
    return math.log(x) - 0.5 / x - series - shift
