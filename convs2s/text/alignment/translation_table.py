"""Tables over pairs of words that occur together, and the probability that one translates the other.

Each source word has a row, a hash table of the target words that it occurs with. So each pair of words has a
slot, its index into flat arrays. Memory is proportional to the number of distinct pairs of words, about 35
bytes each.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from convs2s.text.alignment.compiled import compiled
from convs2s.text.alignment.word_ids import Chunk, Corpus, Ids, Side, ranges
from convs2s.text.corpus.flat_ids import Offsets
from convs2s.text.corpus.parallel import Threads

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]

BATCH_WORDS = 1 << 24
"""Occurrences of source words whose rows are built together; 4 bytes each."""
EMPTY = -1
ALPHA = 0.01
"""Pseudo-count of variational Bayes, for each pair of words (Dyer et al., 2013)."""
FLOOR = 1.2e-38
"""Lowest probability: float32 cannot hold less in full precision, and no sum may become 0."""


class Table(NamedTuple):
    """Row of source word s: slots [starts[s], starts[s + 1]) of `targets`; a free slot holds -1."""

    starts: Offsets
    targets: Ids


class Batch(NamedTuple):
    """Occurrences of source words: word first + w occurs in sentences[places[w] : places[w + 1]]."""

    first: int
    places: Offsets
    sentences: Ids


def build_table(corpus: Corpus, threads: Threads) -> Table:
    """Return the table of all pairs of words that occur together in a sentence pair.

    It does not depend on the number of threads or the size of batches.
    """
    target = corpus.target.ids, corpus.target.offsets
    sizes = np.zeros(corpus.source.vocabulary, np.int64)
    for batch in batches(corpus.source):
        threads.share(batch.places, count_rows, batch, *target, corpus.target.vocabulary, sizes)
    capacities = sizes + sizes // 4 + np.minimum(sizes, 1)  # rows are at most 80% full
    starts = np.insert(np.cumsum(capacities), 0, 0)
    table = Table(starts, np.full(starts[-1], EMPTY, np.int32))
    for batch in batches(corpus.source):
        threads.share(batch.places, fill_rows, batch, *target, table)
    return table


def batches(source: Side) -> Iterator[Batch]:
    """Yield batches of source words with at most BATCH_WORDS occurrences, but at least one word."""
    frequencies = np.zeros(source.vocabulary, np.int64)
    for begin in range(0, len(source.ids), BATCH_WORDS):
        frequencies += np.bincount(source.ids[begin : begin + BATCH_WORDS], minlength=source.vocabulary)
    for first, last in ranges(frequencies, BATCH_WORDS):
        places = np.insert(np.cumsum(frequencies[first:last]), 0, 0)
        sentences = np.empty(places[-1], np.int32)
        gather(source.ids, source.offsets, first, last, places[:-1].copy(), sentences)
        yield Batch(first, places, sentences)


@compiled
def gather(
    source: NDArray[np.integer], offsets: Offsets, first: int, last: int, places: Offsets, sentences: Ids
) -> None:
    """List the sentences of each word w in [first, last) in `sentences`, starting at places[w - first]."""
    for k in range(len(offsets) - 1):
        for word in source[offsets[k] : offsets[k + 1]]:
            if first <= word < last:
                sentences[places[word - first]] = k
                places[word - first] += 1


@compiled
def count_rows(
    begin: int, end: int, batch: Batch, target: Ids, offsets: Offsets, vocabulary: int, sizes: Offsets
) -> None:
    """Write to `sizes` the number of target words that source words [begin, end) of a batch occur with."""
    seen = np.full(vocabulary, EMPTY, np.int32)  # the last source word that occurred with this target word
    for word in range(begin, end):
        for k in batch.sentences[batch.places[word] : batch.places[word + 1]]:
            for t in target[offsets[k] : offsets[k + 1]]:
                if seen[t] != word:
                    seen[t] = word
                    sizes[batch.first + word] += 1


@compiled
def fill_rows(begin: int, end: int, batch: Batch, target: Ids, offsets: Offsets, table: Table) -> None:
    """Fill the row of each source word [begin, end) of a batch with the target words it occurs with."""
    for word in range(begin, end):
        for k in batch.sentences[batch.places[word] : batch.places[word + 1]]:
            for t in target[offsets[k] : offsets[k + 1]]:
                table.targets[find(table, batch.first + word, t)] = t


@compiled
def find(table: Table, source: int, target: int) -> int:
    """Return the slot of a pair of words, or if it has none, the free slot where it belongs."""
    slot: int
    start, end = table.starts[source], table.starts[source + 1]
    # Fibonacci hashing: the product's lower 32 bits, as a fraction of 2^32, choose a place in the row.
    scrambled = (np.int64(target) * 2_654_435_769) & 0xFFFFFFFF
    slot = start + ((scrambled * (end - start)) >> 32)
    while table.targets[slot] != target and table.targets[slot] != EMPTY:
        slot = slot + 1 if slot + 1 < end else start
    return slot


@compiled
def look_up(first: int, last: int, chunk: Chunk, cells: Offsets, table: Table, slots: Offsets) -> None:
    """Write the slots of all pairs of words in the chunk's sentence pairs [first, last).

    Those of pair k are the range [cells[k], cells[k + 1]) of `slots`, by source, then target position.
    """
    for k in range(first, last):
        cell = cells[k]
        for s in chunk.source[chunk.source_offsets[k] : chunk.source_offsets[k + 1]]:
            for t in chunk.target[chunk.target_offsets[k] : chunk.target_offsets[k + 1]]:
                slots[cell] = find(table, s, t)
                cell += 1


@compiled
def normalize(
    table: Table, given_source: bool, vocabulary: int, counts: Doubles, probabilities: Floats
) -> None:
    """Turn expected counts into probabilities by mean-field variational Bayes, and reset them to 0.

    p(f|e) = exp(digamma(count(e, f) + ALPHA) - digamma(total of these over f)). It does not sum to 1.

    Args:
        table: of pairs of words.
        given_source: whether e is the source word and f the target word, rather than the reverse.
        vocabulary: number of words e.
        counts: of each slot.
        probabilities: of each slot; overwritten.
    """
    totals = np.zeros(vocabulary)
    for s in range(len(table.starts) - 1):
        for slot in range(table.starts[s], table.starts[s + 1]):
            if table.targets[slot] != EMPTY:
                totals[s if given_source else table.targets[slot]] += counts[slot] + ALPHA
    for e in range(vocabulary):
        totals[e] = digamma(totals[e])
    for s in range(len(table.starts) - 1):
        for slot in range(table.starts[s], table.starts[s + 1]):
            if table.targets[slot] != EMPTY:
                log_total = totals[s if given_source else table.targets[slot]]
                probabilities[slot] = max(math.exp(digamma(counts[slot] + ALPHA) - log_total), FLOOR)
                counts[slot] = 0.0


@compiled
def digamma(x: float) -> float:
    """Return the derivative of log(gamma(x)) for x > 0, to about 1e-12 (Abramowitz & Stegun 6.3.18)."""
    shift = 0.0
    while x < 10.0:  # where the series below is not yet exact: digamma(x) = digamma(x + 1) - 1/x
        shift += 1.0 / x
        x += 1.0
    y = 1.0 / (x * x)
    series = y * (1 / 12 - y * (1 / 120 - y * (1 / 252 - y * (1 / 240 - y / 132))))
    return math.log(x) - 0.5 / x - series - shift
