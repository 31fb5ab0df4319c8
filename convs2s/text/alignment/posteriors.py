"""The probabilities that words are linked (Dyer et al., 2013, §2), as loops over generated words.

The model explains each word of one sentence, the generated one, by a word of the other, the given one, or by
none. Each occurrence of a generated word is independent of all others, so the loops take one generated word
at a time, and go through all sentences in which it occurs.

The table has a value for each generated word and each given word that occur in one sentence pair. The
values of a generated word are in the order in which its sentences first show each given word. A loop meets
the given words in this same order, so the table need not store which they are, and a value takes 4 bytes.

These loops call only functions of this file: they are compiled again after an edit of it, but not of others.
"""
# mypy: disable-error-code="untyped-decorator"

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from convs2s.base.compilation import compiled
from convs2s.ids.encoded import Ids, Offsets

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]

NULL_PROBABILITY = 0.08
"""Prior probability that a generated word has no link (p0 of Dyer et al., 2013)."""
ALPHA = 0.01
"""Pseudo-count of variational Bayes, for each pair of words (Dyer et al., 2013)."""
FLOOR = 1.2e-38
"""Lowest probability: float32 cannot hold less in full precision, and no sum may become 0."""
UNIT = 1 << 30
"""Expected counts are added as multiples of 1 / UNIT: sums of integers do not depend on the order."""
POSITION_BITS = 24


class Table(NamedTuple):
    """The corpus, seen from one direction: the occurrences of each generated word, and its values."""

    places: Offsets
    """Word w has the occurrences places[w] to places[w + 1], in the order of the corpus."""
    occurrences: Offsets
    """Sentence << POSITION_BITS | position of the generated word from 0."""
    starts: Offsets
    """Word w has the values starts[w] to starts[w + 1]."""
    values: Floats
    given: Ids
    """The ids of all given sentences, concatenated."""
    given_offsets: Offsets
    generated_offsets: Offsets


class LinkModel(NamedTuple):
    """One direction: p(generated | given) is a value of the table times the given word's scale.

    The last four are the diagonal prior's terms for sentences of each length n: from begins[n], for word i.
    """

    scales: Doubles
    nulls: Floats
    """p(generated | no word)."""
    begins: Offsets
    place: Doubles
    """i / n; i counts from 1."""
    rise: Doubles
    """exp(tension i / n)."""
    fall: Doubles
    """exp(-tension i / n)."""


class Row(NamedTuple):
    """The values of the generated word in use, and what the loops find about a sentence on the way.

    The first three are in the order of its values. For rare words, these few numbers stay close together.
    """

    words: Ids
    """The given words."""
    probabilities: Doubles
    counts: Doubles
    indices: Ids
    """Where each given word is in these three, or would be: it is there if `words` has it at this index."""
    found: Ids
    """The index of each word of the given sentence."""
    weights: Doubles
    """A number for each word of the given sentence; the probability that it is linked is proportional."""


def make_model(scales: Doubles, nulls: Floats, lengths: Offsets, tension: float) -> LinkModel:
    """Return a model for sentences of these lengths, which are distinct and above 0."""
    begins = np.zeros(lengths.max() + 1, np.int64)
    begins[lengths] = np.cumsum(lengths) - lengths
    place = np.concatenate([np.arange(1, n + 1) / n for n in lengths.tolist()])
    return LinkModel(scales, nulls, begins, place, np.exp(tension * place), np.exp(-tension * place))


@compiled()
def add_frequencies(ids: Ids, frequencies: Offsets) -> None:
    """Add the number of occurrences of each word."""
    for word in ids:
        frequencies[word] += 1


@compiled()
def list_occurrences(ids: Ids, offsets: Offsets, places: Offsets, occurrences: Offsets) -> None:
    """Write each word's occurrences from its place on; changes `places`."""
    for k in range(len(offsets) - 1):
        for j in range(offsets[k + 1] - offsets[k]):
            word = ids[offsets[k] + j]
            occurrences[places[word]] = (k << POSITION_BITS) | j
            places[word] += 1


@compiled()
def count_values(first: int, last: int, table: Table, vocabulary: int, sizes: Offsets) -> None:
    """Write the number of distinct given words that occur with each of the generated words [first, last)."""
    seen = np.full(vocabulary, -1, np.int32)  # the last generated word that occurred with this given word
    for word in range(first, last):
        for occurrence in table.occurrences[table.places[word] : table.places[word + 1]]:
            given, _, _, _ = given_words(table, occurrence)
            for other in given:
                if seen[other] != word:
                    seen[other] = word
                    sizes[word] += 1


@compiled()
def given_words(table: Table, occurrence: int) -> tuple[Ids, int, int, int]:
    """Return the given sentence, the generated one's number and length, and the word's position in it."""
    k = occurrence >> POSITION_BITS
    j = occurrence & ((1 << POSITION_BITS) - 1)
    given = table.given[table.given_offsets[k] : table.given_offsets[k + 1]]
    return given, k, table.generated_offsets[k + 1] - table.generated_offsets[k], j


@compiled()
def empty_row(model: LinkModel) -> Row:
    """Return a row of no word, with room for all given words."""
    size, longest = len(model.scales), len(model.begins)
    return Row(
        np.empty(size, np.int32), np.empty(size), np.empty(size), np.zeros(size, np.int32),
        np.empty(longest, np.int32), np.empty(longest),
    )  # fmt: skip


@compiled()
def weigh(
    word: int, given: Ids, m: int, j: int, values: Floats, size: int, row: Row, model: LinkModel
) -> tuple[int, float, float]:
    """Write the weight of each word of the given sentence to the row, and where it is in the row.

    Args:
        word: the generated word, at position j of m; its row has these values.
        size: number of given words in `row` so far; those that are new are added, with counts of 0.

    Returns:
        The number of words in the row, the factor that turns weights into posteriors, and the posterior
        probability of no link.
    """
    begin, diagonal = model.begins[len(given)], model.begins[m] + j
    up, down = model.rise[diagonal], model.fall[diagonal]
    z, total = 0.0, 0.0
    for i in range(len(given)):
        other = given[i]
        index = row.indices[other]
        if index >= size or row.words[index] != other:
            index = size
            row.indices[other] = index
            row.words[index] = other
            row.probabilities[index] = max(values[index] * model.scales[other], FLOOR)
            row.counts[index] = 0.0
            size += 1
        row.found[i] = index
        # exp(-tension |i/n - j/m|), with no exp per word
        prior = min(model.rise[begin + i] * down, up * model.fall[begin + i])
        z += prior
        row.weights[i] = prior * row.probabilities[index]
        total += row.weights[i]
    null = NULL_PROBABILITY * model.nulls[word]
    scale = (1.0 - NULL_PROBABILITY) / z
    total = null + total * scale
    return size, scale / total, null / total


@compiled()
def expect_words(
    first: int, last: int, table: Table, model: LinkModel, nulls: Doubles, distances: Doubles
) -> Offsets:
    """Run one iteration of expectation maximization on generated words [first, last).

    The expected count c of each pair of words becomes exp(digamma(c + ALPHA)) in the table: mean-field
    variational Bayes divides it by exp(digamma(t)), t being the total of c + ALPHA over all rows.

    Args:
        nulls: output: each generated word's expected number of occurrences without a link.
        distances: output: the sum of their expected distances from the diagonal.

    Returns:
        The total t of each given word over these rows, in multiples of 1 / UNIT.
    """
    totals = np.zeros(len(model.scales), np.int64)
    row = empty_row(model)
    for word in range(first, last):
        size, unlinked, distance = 0, 0.0, 0.0
        values = table.values[table.starts[word] : table.starts[word + 1]]
        for occurrence in table.occurrences[table.places[word] : table.places[word + 1]]:
            given, _, m, j = given_words(table, occurrence)
            size, share, null = weigh(word, given, m, j, values, size, row, model)
            unlinked += null
            # fast_align's posterior distance, unlike its prior, counts j from 0, so it fits tensions of about
            # 7 where 12 would be exact. The dictionary must match fast_align's (T33), so we do the same.
            begin = model.begins[len(given)]
            behind = j / m
            away = 0.0
            for i in range(len(given)):
                row.counts[row.found[i]] += row.weights[i] * share
                away += abs(model.place[begin + i] - behind) * row.weights[i]
            distance += away * share
        nulls[word], distances[word] = unlinked, distance
        counts = row.counts[:size] + ALPHA
        for v in range(size):
            totals[row.words[v]] += round(counts[v] * UNIT)
        values[:] = np.exp(digammas(counts))
    return totals


@compiled()
def choose_links(first: int, last: int, table: Table, model: LinkModel, chosen: Ids) -> None:
    """Write the given position that each occurrence of words [first, last) is linked with, or -1 for none.

    It is the most probable one. Ties go to no link, then to the leftmost position, as in fast_align.
    """
    row = empty_row(model)
    for word in range(first, last):
        size = 0
        values = table.values[table.starts[word] : table.starts[word + 1]]
        for occurrence in table.occurrences[table.places[word] : table.places[word + 1]]:
            given, k, m, j = given_words(table, occurrence)
            size, share, null = weigh(word, given, m, j, values, size, row, model)
            # Rounded to float32: without, equal posteriors differ in their last bits.
            highest, position = np.float32(null), -1
            for i in range(len(given)):
                posterior = np.float32(row.weights[i] * share)
                if posterior > highest:
                    highest, position = posterior, i
            chosen[table.generated_offsets[k] + j] = position


@compiled(error_model="numpy")  # without a test for each division, processors compute several at once
def digammas(numbers: Doubles) -> Doubles:
    """Return the derivative of log(gamma(x)) for each x > 0, to about 1e-12 (Abramowitz & Stegun 6.3.18)."""
    results, shifts = numbers.copy(), np.zeros(len(numbers))
    for k in range(len(numbers)):
        # Up to 10, the series below is not yet exact: digamma(x) = digamma(x + 2) - 1/x - 1/(x + 1).
        x, shift = numbers[k], 0.0
        for _ in range(5):
            is_low = x < 10.0
            shift += (2.0 * x + 1.0) / (x * (x + 1.0)) if is_low else 0.0
            x += 2.0 if is_low else 0.0
        results[k], shifts[k] = x, shift
    for k in range(len(numbers)):
        x = results[k]
        y = 1.0 / (x * x)
        series = y * (1 / 12 - y * (1 / 120 - y * (1 / 252 - y * (1 / 240 - y / 132))))
        results[k] = math.log(x) - 0.5 / x - series - shifts[k]
    return results
