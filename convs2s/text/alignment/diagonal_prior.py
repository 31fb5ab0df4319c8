"""The diagonal prior of word alignment and its tension (Dyer et al., 2013, eq. 1 to 4).

If word j of m generated words is linked at all, it is linked with word i of n given words with a
probability proportional to exp(-tension * |i/n - j/m|). Positions count from 1.

The program fast_align has a bug in fitting the tension: its gradient function calls the normalizer with the
two lengths swapped. We do the same, so that links equal the program's (T33).
"""
# mypy: disable-error-code="untyped-decorator"

import math

import numpy as np
from numpy.typing import NDArray

from convs2s.base.compilation import compiled

FIRST_TENSION = 4.0
LOWEST_TENSION, HIGHEST_TENSION = 0.1, 14.0
STEPS = 8
STEP_SIZE = 20.0


@compiled()
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


@compiled()
def expected_distance(lengths: NDArray[np.int64], tension: float) -> float:
    """Return the sum over generated words of the prior's mean |i/n - j/m|, with fast_align's normalizer.

    Args:
        lengths: columns n, above 0, m, number of sentence pairs; a row per combination of lengths.
    """
    total = 0.0
    for k in range(len(lengths)):
        n, m, pairs = lengths[k, 0], lengths[k, 1], lengths[k, 2]
        places = np.arange(1, n + 1) / n
        rise = np.exp(tension * places)
        for j in range(1, m + 1):
            place = j / m
            up = math.exp(tension * j / m)
            distance = 0.0
            for term in np.abs(places - place) * np.minimum(rise / up, up / rise):
                distance += term
            total += pairs * distance / swapped_normalizer(j, n, m, tension)
    return total


def optimize_tension(tension: float, distance: float, lengths: NDArray[np.int64], words: int) -> float:
    """Return the tension after gradient steps that bring the prior's mean distance to the posterior's.

    Args:
        distance: mean |i/n - j/m| under the posterior, per generated word.
        lengths: as for `expected_distance`.
    """
    for _ in range(STEPS):
        gradient = expected_distance(lengths, tension) / words - distance
        tension = min(max(tension + STEP_SIZE * gradient, LOWEST_TENSION), HIGHEST_TENSION)
    return tension
