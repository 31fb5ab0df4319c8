"""Variational Bayes; `test_fast_align` compares the tables themselves with a plain reference."""

import math

import numpy as np
import pytest

from convs2s.text.alignment.translation_table import EMPTY, FLOOR, Table, digamma, normalize

EULER = 0.577215664901532860606512


def test_digamma_has_its_known_values() -> None:
    """digamma(1) = -gamma, digamma(1/2) = -gamma - 2 log 2, digamma(x + 1) = digamma(x) + 1/x."""
    assert digamma(1.0) == pytest.approx(-EULER, rel=1e-12)
    assert digamma(0.5) == pytest.approx(-EULER - 2 * math.log(2), rel=1e-12)
    assert digamma(0.01) == pytest.approx(digamma(1.01) - 100.0, rel=1e-12)
    assert digamma(1e6) == pytest.approx(math.log(1e6) - 0.5e-6, rel=1e-12)


def test_no_probability_becomes_zero() -> None:
    """If all candidates of a word had 0, its posterior would be 0/0."""
    table = Table(np.array([0, 3]), np.array([0, 1, EMPTY], np.int32))
    probabilities = np.zeros(3, np.float32)
    normalize(table, True, 1, np.array([0.0, 1e12, 0.0]), probabilities)
    assert probabilities[0] == np.float32(FLOOR) >= np.finfo(np.float32).smallest_normal
