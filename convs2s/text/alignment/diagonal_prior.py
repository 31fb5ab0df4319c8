"""The diagonal prior of word alignment and its tension (Dyer et al., 2013, eq. 1 to 4).

If word j of m generated words is linked at all, it is linked with word i of n given words with a
probability proportional to exp(-tension * |i/n - j/m|). Positions count from 1.

The program fast_align has a bug in fitting the tension: its gradient function calls the normalizer with the
two lengths swapped. `swapped` reproduces that, so that links equal the program's.
"""

import math

import numpy as np
from numpy.typing import NDArray

from convs2s.base.compiled import compiled

FIRST_TENSION = 4.0
LOWEST_TENSION, HIGHEST_TENSION = 0.1, 14.0
STEPS = 8
STEP_SIZE = 20.0


@compiled
def swapped_normalizer(j: int, n: int, m: int, tension: float) -> float:
    """Return fast_align's normalizer for generated word j of m, given n words, with n and m swapped."""
    low = j * m // n
    ratio = math.exp(-tension / m)
    total = 0.0
    if m != low:
        # Where low exceeds m, the program's unsigned m - low is huge, and the power 0.
        power = ratio ** (m - low) if m > low else 0.0
        total += math.exp(-tension * abs((low + 1) / m - j / n)) * (1.0 - power) / (1.0 - ratio)
    if low:
        total += math.exp(-tension * abs(low / m - j / n)) * (1.0 - ratio**low) / (1.0 - ratio)
    return total


@compiled
def expected_distance(
    given: NDArray[np.int64],
    generated: NDArray[np.int64],
    pairs: NDArray[np.int64],
    tension: float,
    swapped: bool,
) -> float:
    """Return the sum over generated words of the prior's mean |i/n - j/m|, the null word excluded.

    Args:
        given: lengths n in words, above 0.
        generated: lengths m in words.
        pairs: number of sentence pairs with these two lengths.
        swapped: normalize as the program fast_align does.
    """
    total = 0.0
    for k in range(len(pairs)):
        n, m = given[k], generated[k]
        # Weights decay geometrically on either side of the diagonal, so two prefix sums per n suffice for all
        # j: mass[c] = sum of ratio^k and moment[c] = sum of k ratio^k over k < c.
        mass, moment = np.zeros(n + 1), np.zeros(n + 1)
        power, ratio = 1.0, math.exp(-tension / n)
        for c in range(n):
            mass[c + 1] = mass[c] + power
            moment[c + 1] = moment[c] + c * power
            power *= ratio
        for j in range(1, m + 1):
            low = j * n // m  # positions at or left of the diagonal
            high = n - low
            to_low, to_high = j / m - low / n, (low + 1) / n - j / m
            low_weight, high_weight = math.exp(-tension * to_low), math.exp(-tension * to_high)
            z = low_weight * mass[low] + high_weight * mass[high]
            if swapped:
                z = swapped_normalizer(j, n, m, tension)
            low_sum = to_low * mass[low] + moment[low] / n
            high_sum = to_high * mass[high] + moment[high] / n
            total += pairs[k] * (low_weight * low_sum + high_weight * high_sum) / z
    return total


def optimize_tension(
    tension: float, distance: float, lengths: NDArray[np.int64], words: int, swapped: bool
) -> float:
    """Return the tension after gradient steps that bring the prior's mean distance to the posterior's.

    Args:
        distance: mean |i/n - j/m| under the posterior, per generated word.
        lengths: columns given length, generated length, number of pairs; a row per combination of lengths.
        words: number of generated words.
        swapped: as for `expected_distance`.
    """
    given, generated, pairs = (np.ascontiguousarray(column) for column in lengths.T)
    for _ in range(STEPS):
        gradient = expected_distance(given, generated, pairs, tension, swapped) / words - distance
        tension = min(max(tension + STEP_SIZE * gradient, LOWEST_TENSION), HIGHEST_TENSION)
    return tension
