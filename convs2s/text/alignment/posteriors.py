"""The probabilities that words of a sentence pair are linked (Dyer et al., 2013, §2), for chunks of pairs.

A cell is a source word and a target word of one sentence pair. The cells of pair k are the range
[cells[k], cells[k + 1]) of flat arrays, ordered by source position, then target position.
"""

import math
from typing import NamedTuple

import numpy as np

from convs2s.text.alignment.compiled import compiled
from convs2s.text.alignment.translation_table import Doubles, Floats
from convs2s.text.alignment.word_ids import Chunk, Ids
from convs2s.text.corpus.flat_ids import Offsets

NULL_PROBABILITY = 0.08
"""Prior probability that a generated word has no link (p0 of Dyer et al., 2013)."""


class Model(NamedTuple):
    """One direction: p(generated | given) for each slot, for the null word, and the prior's tension."""

    words: Floats
    nulls: Floats
    tension: float


class Posteriors(NamedTuple):
    """One direction's posteriors of a chunk."""

    words: Floats
    """Of each cell: the probability that the two words are linked."""
    nulls: Floats
    """Of each generated word: the probability that it has no link."""
    sums: Doubles
    """Of each pair: log likelihood in nats, and sum of posterior distances from the diagonal."""


def empty_posteriors(cells: Offsets, generated_words: int) -> Posteriors:
    """Return uninitialized posteriors for a chunk."""
    words, nulls = np.empty(cells[-1], np.float32), np.empty(generated_words, np.float32)
    return Posteriors(words, nulls, np.empty((len(cells) - 1, 2)))


class Line(NamedTuple):
    """One side of a sentence pair, and its layout in the cells."""

    begin: int
    """Index of the side's first word in the chunk."""
    length: int
    """Number of words."""
    stride: int
    """Distance between the cells of neighboring words."""


@compiled
def expect_pairs(
    first: int, last: int, chunk: Chunk, cells: Offsets, slots: Offsets,
    forward: Model, backward: Model, forward_posteriors: Posteriors, backward_posteriors: Posteriors,
) -> None:  # fmt: skip
    """Write both directions' posteriors of the chunk's pairs [first, last), given their cells' slots."""
    for k in range(first, last):
        s, t = chunk.source_offsets[k], chunk.target_offsets[k]
        n, m = chunk.source_offsets[k + 1] - s, chunk.target_offsets[k + 1] - t
        source, target = Line(s, n, m), Line(t, m, 1)
        expect(k, cells[k], source, target, chunk.target, slots, forward, forward_posteriors)
        expect(k, cells[k], target, source, chunk.source, slots, backward, backward_posteriors)


@compiled
def expect(
    pair: int, cell: int, given: Line, generated: Line, words: Ids, slots: Offsets,
    model: Model, posteriors: Posteriors,
) -> None:  # fmt: skip
    """Write one direction's posteriors of one pair, whose cells begin at `cell`."""
    n, m = given.length, generated.length
    place = np.arange(1, n + 1) / n
    rise, fall = np.exp(model.tension * place), np.exp(-model.tension * place)
    scores = np.empty(n)
    log_likelihood, distance = 0.0, 0.0
    for j in range(m):
        # fast_align's posterior distance, unlike its prior, counts j from 0, so it fits tensions of about 7
        # where 12 would be exact. The dictionary must match fast_align's (T33), so we do the same.
        here, behind = (j + 1) / m, j / m
        up, down = math.exp(model.tension * here), math.exp(-model.tension * here)
        z = 0.0
        for i in range(n):
            scores[i] = min(rise[i] * down, up * fall[i])  # exp(-tension |i/n - j/m|), with no exp per cell
            z += scores[i]
        null = NULL_PROBABILITY * model.nulls[words[generated.begin + j]]
        total, scale = null, (1.0 - NULL_PROBABILITY) / z
        for i in range(n):
            slot = slots[cell + i * given.stride + j * generated.stride]
            scores[i] *= scale * model.words[slot]
            total += scores[i]
        posteriors.nulls[generated.begin + j] = null / total
        share = 1.0 / total
        for i in range(n):
            posterior = scores[i] * share
            posteriors.words[cell + i * given.stride + j * generated.stride] = posterior
            distance += abs(place[i] - behind) * posterior
        log_likelihood += math.log(total)
    posteriors.sums[pair, 0] = log_likelihood
    posteriors.sums[pair, 1] = distance


@compiled
def accumulate(
    slots: Offsets, generated: Ids, posteriors: Posteriors, counts: Doubles, null_counts: Doubles,
    sums: Doubles,
) -> None:  # fmt: skip
    """Add a chunk's posteriors to expected counts and sums, in the order of the corpus."""
    for c in range(len(slots)):
        counts[slots[c]] += posteriors.words[c]
    for w in range(len(generated)):
        null_counts[generated[w]] += posteriors.nulls[w]
    for k in range(len(posteriors.sums)):
        sums[0] += posteriors.sums[k, 0]
        sums[1] += posteriors.sums[k, 1]


@compiled
def choose_pairs(
    first: int, last: int, chunk: Chunk, cells: Offsets, forward: Posteriors, backward: Posteriors,
    source_of: Ids, target_of: Ids,
) -> None:  # fmt: skip
    """Write the position that each word of the chunk's pairs [first, last) is linked with.

    It is a position in the other side's sentence, or -1 for none: `source_of` each target word, `target_of`
    each source word.
    """
    for k in range(first, last):
        s, t = chunk.source_offsets[k], chunk.target_offsets[k]
        n, m = chunk.source_offsets[k + 1] - s, chunk.target_offsets[k + 1] - t
        source, target = Line(s, n, m), Line(t, m, 1)
        choose(cells[k], source, target, forward, source_of)
        choose(cells[k], target, source, backward, target_of)


@compiled
def choose(cell: int, given: Line, generated: Line, posteriors: Posteriors, given_of: Ids) -> None:
    """Write the most probable given position of each generated word, or -1 for none.

    Ties go to no link, then to the leftmost position, as in fast_align.
    """
    for j in range(generated.length):
        highest, position = posteriors.nulls[generated.begin + j], -1
        for i in range(given.length):
            posterior = posteriors.words[cell + i * given.stride + j * generated.stride]
            if posterior > highest:
                highest, position = posterior, i
        given_of[generated.begin + j] = position
