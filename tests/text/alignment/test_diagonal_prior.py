"""The prior's mean distance from the diagonal and the tension fitted to it."""

import math

import numpy as np
import pytest

from convs2s.text.alignment.diagonal_prior import expected_distance, optimize_tension


def distance_by_fast_align(n: int, m: int, tension: float) -> float:
    """Return minus the sum over j of ComputeDLogZ, computed as in fast_align's da.h.

    ComputeZ swaps the lengths, and its num_top is unsigned.
    """
    total = 0.0
    for j in range(1, m + 1):
        split = j * m / n
        ratio = math.exp(-tension / m)
        z = 0.0
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
def test_the_distance_is_that_of_fast_align(n: int, m: int, tension: float) -> None:
    """To get the program's links, its error must be repeated; each combination of lengths has its pairs."""
    wanted = 7 * distance_by_fast_align(n, m, tension) + 2 * distance_by_fast_align(2, 5, tension)
    lengths = np.array([[n, m, 7], [2, 5, 2]])
    assert expected_distance(lengths, tension) == pytest.approx(wanted, rel=1e-9, abs=1e-12)


def test_eight_steps_are_those_of_gradient_ascent() -> None:
    """Each step adds 20 times the prior's mean distance minus the posterior's (fast_align's rate)."""
    tension = 4.0
    for _ in range(8):
        tension += 20.0 * (distance_by_fast_align(6, 5, tension) / 5 - 0.1)
    assert 4.0 < tension < 14.0
    lengths = np.array([[6, 5, 10]])
    assert optimize_tension(4.0, 0.1, lengths, 50) == pytest.approx(tension, rel=1e-9)
    # A distance of zero would require infinite tension, a large one negative tension.
    assert optimize_tension(4.0, 0.0, lengths, 50) == 14.0
    assert optimize_tension(4.0, 0.9, lengths, 50) == 0.1
