"""The choice of links and lowest values; `test_fast_align` compares the tables with a plain reference."""

import numpy as np
import pytest

from convs2s.text.alignment.posteriors import (
    FLOOR,
    NULL_PROBABILITY,
    LinkModel,
    Table,
    choose_links,
    digammas,
    expect_words,
    make_model,
)

EULER = 0.577215664901532860606512


def table(values: list[float]) -> Table:
    """Return the table of a single pair of two given words, 0 and 1, and one generated word, 0."""
    places, starts = np.array([0, 1]), np.array([0, 2])
    given, offsets = np.array([0, 1], np.int32), (np.array([0, 2]), np.array([0, 1]))
    for array in (given, *offsets):
        array.flags.writeable = False  # as in a corpus on disk; for others, numba compiles the loops again
    return Table(places, np.array([0]), starts, np.array(values, np.float32), given, *offsets)


def model(null: float) -> LinkModel:
    return make_model(np.ones(2), np.array([null], np.float32), np.array([1, 2]), 0.0)


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
    chosen = np.full(1, -9, np.int32)
    choose_links(0, 1, table([word / prior for word in words]), model(null / NULL_PROBABILITY), chosen)
    assert chosen.tolist() == [wanted]


def test_no_probability_becomes_zero() -> None:
    """If all of a word's had 0, its posterior would be 0/0."""
    chosen, (nulls, distances) = np.full(1, -9, np.int32), np.zeros((2, 1))
    choose_links(0, 1, table([0.0, 0.0]), model(0.0), chosen)
    assert chosen.tolist() == [0]
    expect_words(0, 1, table([0.0, 0.0]), model(0.0), nulls, distances)
    assert np.isfinite(distances).all()
    assert np.float32(FLOOR) >= np.finfo(np.float32).smallest_normal


def test_digamma_has_its_known_values() -> None:
    """digamma(1) = -gamma, digamma(1/2) = -gamma - 2 log 2, digamma(x + 1) = digamma(x) + 1/x."""
    one, small, next_to_small, half, large = digammas(np.array([1.0, 0.01, 1.01, 0.5, 1e6])).tolist()
    assert one == pytest.approx(-EULER, rel=1e-12)
    assert small == pytest.approx(next_to_small - 100.0, rel=1e-12)
    assert half == pytest.approx(-EULER - 2 * 0.6931471805599453, rel=1e-12)
    assert large == pytest.approx(13.815510557964274 - 0.5e-6, rel=1e-12)
