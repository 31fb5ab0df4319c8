"""The probabilities that words are linked (Dyer et al., 2013, §2), for rows of the translation table.

A generated word is linked with a word of the given sentence or with none. Each of its occurrences is
independent of all others.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from convs2s.base.compiled import compiled
from convs2s.ids.flat_ids import Offsets
from convs2s.text.alignment.translation_table import (
    ALPHA,
    FLOOR,
    POSITION_BITS,
    Doubles,
    Floats,
    Rows,
    digamma,
)
from convs2s.text.alignment.word_ids import HEADER, Ids

NULL_PROBABILITY = 0.08
"""Prior probability that a generated word has no link (p0 of Dyer et al., 2013)."""
UNIT = 1 << 30
"""Expected counts are added as multiples of 1 / UNIT: sums of integers do not depend on the order."""


class Positions(NamedTuple):
    """The diagonal prior's terms for sentences of each length n, from begins[n]: for word i, from 1."""

    begins: Offsets
    place: Doubles
    """i / n."""
    rise: Doubles
    """exp(tension i / n)."""
    fall: Doubles
    """exp(-tension i / n)."""


class Model(NamedTuple):
    """One direction: p(generated | given) is a value of the table times the given word's scale."""

    scales: Doubles
    nulls: Floats
    """p(generated | no word)."""
    positions: Positions


class Row(NamedTuple):
    """The row in use, by given word."""

    seen: Ids
    """The generated word of the last row that had this given word."""
    probabilities: Doubles
    counts: Doubles
    words: Ids
    """The given words of this row, in the order of its values."""


class Sums(NamedTuple):
    """Sums over the occurrences of each generated word."""

    nulls: Doubles
    """Posterior probability of no link."""
    log_likelihoods: Doubles
    """In nats."""
    distances: Doubles
    """Posterior distance from the diagonal."""


def make_positions(lengths: Offsets, tension: float) -> Positions:
    """Return the terms for these lengths, which are distinct and above 0."""
    begins = np.zeros(lengths.max() + 1, np.int64)
    begins[lengths] = np.cumsum(lengths) - lengths
    place = np.concatenate([np.arange(1, n + 1) / n for n in lengths.tolist()])
    return Positions(begins, place, np.exp(tension * place), np.exp(-tension * place))


@compiled
def empty_row(vocabulary: int) -> Row:
    """Return a row of no word."""
    seen, words = np.full(vocabulary, -1, np.int32), np.empty(vocabulary, np.int32)
    return Row(seen, np.empty(vocabulary), np.empty(vocabulary), words)


@compiled
def weigh(
    word: int, occurrence: int, values: Floats, size: int, row: Row, given: Ids, model: Model,
    weights: Doubles,
) -> tuple[int, float, float, float]:  # fmt: skip
    """Write a weight for each word of the given sentence; the probability that it is linked is proportional.

    Args:
        word: the generated word, of which this is an occurrence; its row has these values.
        size: number of given words in `row` so far; those that are new are added, with counts of 0.

    Returns:
        The number of words in the row, the factor that turns weights into posteriors, the posterior
        probability of no link, and the log likelihood.
    """
    record, j = occurrence >> POSITION_BITS, occurrence & ((1 << POSITION_BITS) - 1)
    positions = model.positions
    here = positions.begins[given[record]] + j
    up, down = positions.rise[here], positions.fall[here]
    begin, n = positions.begins[given[record + 1]], given[record + 1]
    z, total = 0.0, 0.0
    for i in range(n):
        other = given[record + HEADER + i]
        if row.seen[other] != word:
            row.seen[other] = word
            row.words[size] = other
            row.probabilities[other] = max(values[size] * model.scales[other], FLOOR)
            row.counts[other] = 0.0
            size += 1
        # exp(-tension |i/n - j/m|), with no exp per word
        prior = min(positions.rise[begin + i] * down, up * positions.fall[begin + i])
        z += prior
        weights[i] = prior * row.probabilities[other]
        total += weights[i]
    null = NULL_PROBABILITY * model.nulls[word]
    scale = (1.0 - NULL_PROBABILITY) / z
    total = null + total * scale
    return size, scale / total, null / total, math.log(total)


@compiled
def expect_rows(rows: Rows, given: Ids, longest: int, model: Model, sums: Sums) -> Any:
    """Run one iteration of expectation maximization on some rows.

    The expected count c of each pair of words becomes exp(digamma(c + ALPHA)) in `rows`: mean-field
    variational Bayes divides it by exp(digamma(t)), t being the total of c + ALPHA over all rows.

    Args:
        given: records of the given side.
        longest: words of its longest sentence.
        sums: overwritten for the words of these rows.

    Returns:
        The total t of each given word over these rows, in multiples of 1 / UNIT.
    """
    totals = np.zeros(len(model.scales), np.int64)
    row, weights = empty_row(len(model.scales)), np.empty(longest)
    positions = model.positions
    for r in range(len(rows.places) - 1):
        word, size = rows.first + r, 0
        values = rows.values[rows.starts[r] : rows.starts[r + 1]]
        nulls, log_likelihood, distance = 0.0, 0.0, 0.0
        for occurrence in rows.occurrences[rows.places[r] : rows.places[r + 1]]:
            size, share, null, log_total = weigh(word, occurrence, values, size, row, given, model, weights)
            nulls += null
            log_likelihood += log_total
            record, j = occurrence >> POSITION_BITS, occurrence & ((1 << POSITION_BITS) - 1)
            m, n = given[record], given[record + 1]
            # fast_align's posterior distance, unlike its prior, counts j from 0, so it fits tensions of about
            # 7 where 12 would be exact. The dictionary must match fast_align's (T33), so we do the same.
            begin, behind = positions.begins[n], j / m
            away = 0.0
            for i in range(n):
                row.counts[given[record + HEADER + i]] += weights[i] * share
                away += abs(positions.place[begin + i] - behind) * weights[i]
            distance += away * share
        sums.nulls[word], sums.log_likelihoods[word], sums.distances[word] = nulls, log_likelihood, distance
        for k in range(size):
            count = row.counts[row.words[k]] + ALPHA
            totals[row.words[k]] += round(count * UNIT)
            values[k] = math.exp(digamma(count))
    return totals


@compiled
def choose_rows(rows: Rows, given: Ids, longest: int, model: Model, chosen: NDArray[Any]) -> None:
    """Write the given position that each occurrence of these rows is linked with, or -1 for none.

    It is the most probable one. Ties go to no link, then to the leftmost position, as in fast_align.
    """
    row, weights = empty_row(len(model.scales)), np.empty(longest)
    for r in range(len(rows.places) - 1):
        size = 0
        values = rows.values[rows.starts[r] : rows.starts[r + 1]]
        for place in range(rows.places[r], rows.places[r + 1]):
            occurrence = rows.occurrences[place]
            size, share, null, _ = weigh(rows.first + r, occurrence, values, size, row, given, model, weights)
            # Rounded to float32: without, equal posteriors differ in their last bits.
            highest, position = np.float32(null), -1
            for i in range(given[(occurrence >> POSITION_BITS) + 1]):
                posterior = np.float32(weights[i] * share)
                if posterior > highest:
                    highest, position = posterior, i
            chosen[place] = position


@compiled
def normalize(totals: Offsets, scales: Doubles) -> None:
    """Write the scale exp(-digamma(t)) of each given word, for totals t in multiples of 1 / UNIT."""
    for word in range(len(totals)):
        if totals[word]:
            scales[word] = math.exp(-digamma(totals[word] / UNIT))


@compiled
def normalize_nulls(counts: Doubles, occurs: NDArray[np.bool_], nulls: Floats) -> None:
    """Write the probabilities of generated words that have no link, given their expected counts."""
    total = 0.0
    for word in range(len(counts)):
        if occurs[word]:
            total += counts[word] + ALPHA
    log_total = digamma(total)
    for word in range(len(counts)):
        if occurs[word]:
            nulls[word] = max(math.exp(digamma(counts[word] + ALPHA) - log_total), FLOOR)
