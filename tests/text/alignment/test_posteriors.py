"""The choice of links and lowest values; `test_fast_align` compares the tables with a plain reference."""

import numpy as np
import pytest

from convs2s.text.alignment.posteriors import (
    NULL_PROBABILITY,
    UNIT,
    Model,
    Sums,
    choose_rows,
    expect_rows,
    make_positions,
    normalize,
    normalize_nulls,
)
from convs2s.text.alignment.translation_table import ALPHA, FLOOR, Rows, digamma

# A pair of two given words, 0 and 1, and one generated word, 0.
GIVEN = np.array([1, 2, 0, 1], np.int32)
WITHOUT_TENSION = make_positions(np.array([1, 2]), 0.0)


def rows(values: list[float]) -> Rows:
    """Return the row of generated word 0, with values for given words 0 and 1."""
    return Rows(0, np.array([0, 1]), np.array([0]), np.array([0, 2]), np.array(values, np.float32))


def model(null: float) -> Model:
    return Model(np.ones(2), np.array([null], np.float32), WITHOUT_TENSION)


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
    prior = (1 - NULL_PROBABILITY) / 2
    chosen = np.full(1, -9, np.int16)
    choose_rows(rows([word / prior for word in words]), GIVEN, 2, model(null / NULL_PROBABILITY), chosen)
    assert chosen.tolist() == [wanted]


def test_expected_counts_become_values_scales_and_nulls() -> None:
    """By hand: posteriors are 0.5, 0.3 and 0.2 for no link."""
    prior = (1 - NULL_PROBABILITY) / 2
    row, sums = rows([0.5 / prior, 0.3 / prior]), Sums(*np.zeros((3, 1)))
    totals = expect_rows(row, GIVEN, 2, model(0.2 / NULL_PROBABILITY), sums)
    counts = [0.5 + ALPHA, 0.3 + ALPHA]
    assert (totals / UNIT).tolist() == pytest.approx(counts, abs=1e-7)
    assert row.values.tolist() == pytest.approx([np.exp(digamma(count)) for count in counts], rel=1e-6)
    # The generated word is at 1 of 1 and counted from 0, the given ones are at 1/2 and 1.
    assert [each.tolist()[0] for each in sums] == pytest.approx([0.2, 0.0, 0.5 * 0.5 + 1.0 * 0.3], abs=1e-7)
    scales, nulls = np.zeros(3), np.zeros(2, np.float32)
    normalize(np.array([UNIT, 0, 2 * UNIT]), scales)
    assert scales.tolist() == pytest.approx([np.exp(-digamma(1.0)), 0.0, np.exp(-digamma(2.0))])
    normalize_nulls(np.array([2.0, 0.0]), np.array([True, False]), nulls)
    assert nulls.tolist() == [1.0, 0.0]


def test_no_probability_becomes_zero() -> None:
    """If all of a word's had 0, its posterior would be 0/0."""
    chosen, sums, nulls = np.full(1, -9, np.int16), Sums(*np.zeros((3, 1))), np.zeros(2, np.float32)
    choose_rows(rows([0.0, 0.0]), GIVEN, 2, model(0.0), chosen)
    assert chosen.tolist() == [0]
    expect_rows(rows([0.0, 0.0]), GIVEN, 2, model(0.0), sums)
    assert np.isfinite(sums.log_likelihoods).all()
    normalize_nulls(np.array([0.0, 1e12]), np.array([True, True]), nulls)
    assert nulls[0] == np.float32(FLOOR) >= np.finfo(np.float32).smallest_normal
