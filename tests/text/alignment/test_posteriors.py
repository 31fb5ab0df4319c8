"""Posteriors of one pair, worked out by hand, and the choice of links."""

import math

import numpy as np
import pytest

from convs2s.text.alignment.posteriors import (
    Model,
    Posteriors,
    accumulate,
    choose_pairs,
    empty_posteriors,
    expect_pairs,
)
from convs2s.text.alignment.word_ids import Chunk

# One pair of two source words, 0 and 1, and one target word, 0.
CHUNK = Chunk(np.array([0, 1], np.int32), np.array([0, 2]), np.array([0], np.int32), np.array([0, 1]))
CELLS = np.array([0, 2])
SLOTS = np.array([1, 0])


def of(words: list[float], nulls: list[float]) -> Posteriors:
    """Return posteriors of these words and null words."""
    return Posteriors(np.array(words, np.float32), np.array(nulls, np.float32), np.zeros((1, 2)))


def test_posteriors_are_prior_times_probability_over_their_sum() -> None:
    """x has source word 1 on the diagonal and 0 at distance 1/2; p(x|0) = 1/2, p(x|1) = 1/4, p(x|null) = 1/8.

    Backward, each source word has only one candidate besides the null word, whose prior is 0.08.
    """
    forward = Model(np.array([0.25, 0.5], np.float32), np.array([0.125], np.float32), 2 * math.log(2))
    backward = Model(np.array([0.5, 0.25], np.float32), np.array([0.5, 0.5], np.float32), 1.0)
    both = empty_posteriors(CELLS, 1), empty_posteriors(CELLS, 2)
    expect_pairs(0, 1, CHUNK, CELLS, SLOTS, forward, backward, *both)
    scores = [0.92 / 3 * 0.5, 0.92 * 2 / 3 * 0.25, 0.08 * 0.125]  # exp(-tension / 2) = 1/2
    total = sum(scores)
    assert both[0].words.tolist() == pytest.approx([scores[0] / total, scores[1] / total], rel=1e-6)
    assert both[0].nulls.tolist() == pytest.approx([scores[2] / total], rel=1e-6)
    # In the posterior distance, j counts from 0: source positions 1/2 and 1 against 0.
    assert both[0].sums[0].tolist() == pytest.approx(
        [math.log(total), (0.5 * scores[0] + 1.0 * scores[1]) / total], rel=1e-6
    )
    totals = [0.92 * 0.25 + 0.04, 0.92 * 0.5 + 0.04]
    assert both[1].words.tolist() == pytest.approx(
        [0.92 * 0.25 / totals[0], 0.92 * 0.5 / totals[1]], rel=1e-6
    )
    assert both[1].sums[0, 0] == pytest.approx(math.log(totals[0]) + math.log(totals[1]), rel=1e-6)


def test_counts_of_the_same_words_are_added_up() -> None:
    """Two cells of one slot, and two words with one id, are added to the counts so far."""
    counts, null_counts, sums = np.array([1.0, 0.0]), np.array([0.5]), np.array([2.0, 0.0])
    posteriors = Posteriors(
        np.array([0.25, 0.5], np.float32),
        np.array([0.25, 0.125], np.float32),
        np.array([[1.0, 2.0], [3.0, 4.0]]),
    )
    accumulate(np.array([1, 1]), np.array([0, 0], np.int32), posteriors, counts, null_counts, sums)
    assert counts.tolist() == [1.0, 0.75]
    assert null_counts.tolist() == [0.875]
    assert sums.tolist() == [6.0, 6.0]


@pytest.mark.parametrize(
    ("words", "null", "wanted"),
    [
        ([0.2, 0.5], 0.3, 1),
        ([0.5, 0.2], 0.3, 0),
        ([0.4, 0.4], 0.2, 0),  # of two equal words, the leftmost
        ([0.25, 0.375], 0.375, -1),  # of a word and an equal null word, the null word
        ([0.1, 0.2], 0.7, -1),
    ],
)
def test_the_most_probable_word_is_chosen(words: list[float], null: float, wanted: int) -> None:
    """Repeated words often tie; fast_align breaks ties this way, and a fixed rule is reproducible."""
    source_of, target_of = np.full(1, -9, np.int32), np.full(2, -9, np.int32)
    choose_pairs(0, 1, CHUNK, CELLS, of(words, [null]), of([0.6, 0.4], [0.4, 0.6]), source_of, target_of)
    assert source_of.tolist() == [wanted]
    assert target_of.tolist() == [0, -1]
