"""The prior's mean distance from the diagonal and the tension fitted to it."""

import math

import numpy as np
import pytest

from convs2s.text.alignment.diagonal_prior import expected_distance, optimize_tension


def array(*values: int) -> "np.typing.NDArray[np.int64]":
    """Return an array of lengths."""
    return np.array(values, np.int64)


def sum_distances(n: int, m: int, tension: float) -> float:
    """Return the sum over j of the mean |i/n - j/m|, term by term."""
    total = 0.0
    for j in range(1, m + 1):
        distances = [abs(i / n - j / m) for i in range(1, n + 1)]
        weights = [math.exp(-tension * d) for d in distances]
        total += sum(w * d for w, d in zip(weights, distances, strict=True)) / sum(weights)
    return total


@pytest.mark.parametrize("tension", [0.1, 4.0, 14.0])
@pytest.mark.parametrize(("n", "m"), [(1, 1), (1, 5), (5, 1), (7, 4), (4, 7), (6, 6), (175, 150)])
def test_geometric_sums_equal_the_terms_added_one_by_one(n: int, m: int, tension: float) -> None:
    """The closed form must only be faster; each combination of lengths is weighted by its pairs."""
    found = expected_distance(array(n, 2), array(m, 5), array(7, 2), tension, False)
    wanted = 7 * sum_distances(n, m, tension) + 2 * sum_distances(2, 5, tension)
    assert found == pytest.approx(wanted, rel=1e-9, abs=1e-12)


def test_eight_steps_are_those_of_gradient_ascent() -> None:
    """Each step adds 20 times the prior's mean distance minus the posterior's (fast_align's rate)."""
    tension = 4.0
    for _ in range(8):
        tension += 20.0 * (sum_distances(6, 5, tension) / 5 - 0.1)
    assert 4.0 < tension < 14.0
    lengths = np.array([[6, 5, 10]])
    assert optimize_tension(4.0, 0.1, lengths, 50, False) == pytest.approx(tension, rel=1e-9)
    # A distance of zero would require infinite tension, a large one negative tension.
    assert optimize_tension(4.0, 0.0, lengths, 50, False) == 14.0
    assert optimize_tension(4.0, 0.9, lengths, 50, False) == 0.1


def distance_by_fast_align(n: int, m: int, tension: float) -> float:
    """Return minus the sum over j of ComputeDLogZ, computed as in fast_align's da.h.

    ComputeZ swaps the lengths, and its num_top is unsigned.
    """
    total = 0.0
    for j in range(1, m + 1):
        split, ratio, z = j * m / n, math.exp(-tension / m), 0.0
        floor = int(split)
        top = (m - floor) % 2**32
        if top:
            z += math.exp(-tension * abs((floor + 1) / m - j / n)) * (1 - ratio**top) / (1 - ratio)
        if floor:
            z += math.exp(-tension * abs(floor / m - j / n)) * (1 - ratio**floor) / (1 - ratio)
        distances = [abs(i / n - j / m) for i in range(1, n + 1)]
        total += sum(math.exp(-tension * d) * d for d in distances) / z
    return total


@pytest.mark.parametrize("tension", [0.1, 4.0, 14.0])
@pytest.mark.parametrize(("n", "m"), [(1, 1), (1, 5), (5, 1), (7, 4), (4, 7), (6, 6), (40, 31)])
def test_swapped_lengths_give_the_gradient_of_fast_align(n: int, m: int, tension: float) -> None:
    """To get the program's links, its error must be repeated; with equal lengths it has no effect."""
    found = expected_distance(array(n), array(m), array(1), tension, True)
    assert found == pytest.approx(distance_by_fast_align(n, m, tension), rel=1e-9, abs=1e-12)
    if n == m:
        assert found == pytest.approx(sum_distances(n, m, tension), rel=1e-9, abs=1e-12)
