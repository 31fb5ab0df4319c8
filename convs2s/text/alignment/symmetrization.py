"""Symmetrization: merge the word alignments of both directions (grow-diag-final-and; Koehn et al., 2003)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from convs2s.base.compiled import compiled

Positions = NDArray[np.int32]
Offsets = NDArray[np.int64]


@compiled
def symmetrize(forward: Positions, backward: Positions, links: Positions) -> int:
    """Write the links that grow-diag-final-and derives from both directions, identical to those of `atools`.

    Begin with the links that both directions have. Grow: repeatedly add a link of either direction that
    touches an accepted link, even diagonally, and gives a word its first link. Final: add forward links, then
    backward links, between two words that are both still unlinked. Links are tried in order of source, then
    target position.

    Args:
        forward: for each target position, the source position it is linked with, or -1.
        backward: for each source position, the target position it is linked with, or -1.
        links: output: rows of (source, target) positions, in the same order; there are at most as many as
            words.

    Returns:
        Number of links.
    """
    source_linked = np.zeros(len(backward), np.bool_)
    target_linked = np.zeros(len(forward), np.bool_)
    accepted = np.zeros((len(backward) + 2, len(forward) + 2), np.bool_)  # with a margin of one
    candidates = np.empty((len(backward) + len(forward), 2), np.int32)
    count = 0
    for i in range(len(backward)):
        for j in range(len(forward)):
            if forward[j] == i and backward[i] == j:
                accepted[i + 1, j + 1] = source_linked[i] = target_linked[j] = True
            elif forward[j] == i or backward[i] == j:
                candidates[count, 0], candidates[count, 1] = i, j
                count += 1
    grow(candidates[:count], accepted, source_linked, target_linked)
    for from_forward in (True, False):
        for c in range(count):
            i, j = candidates[c]
            in_direction = forward[j] == i if from_forward else backward[i] == j
            if in_direction and not source_linked[i] and not target_linked[j]:
                accepted[i + 1, j + 1] = source_linked[i] = target_linked[j] = True
    count = 0
    for i in range(len(backward)):
        for j in range(len(forward)):
            if accepted[i + 1, j + 1]:
                links[count, 0], links[count, 1] = i, j
                count += 1
    return count


@compiled
def grow(candidates: Positions, accepted: Any, source_linked: Any, target_linked: Any) -> None:
    """Accept, in place, the candidates that touch an accepted link and give a word its first link."""
    grown = True
    while grown:
        grown = False
        for i, j in candidates:
            if accepted[i + 1, j + 1] or (source_linked[i] and target_linked[j]):
                continue
            if accepted[i : i + 3, j : j + 3].any():
                accepted[i + 1, j + 1] = source_linked[i] = target_linked[j] = True
                grown = True


@compiled
def symmetrize_pairs(
    first: int, last: int, source_offsets: Offsets, target_offsets: Offsets,
    forward: Positions, backward: Positions, links: Positions, counts: Offsets,
) -> None:  # fmt: skip
    """Symmetrize sentence pairs [first, last), and write the number of links of each to `counts`.

    The links of pair k begin in `links` at the sum of its two sides' offsets.
    """
    for k in range(first, last):
        s, t = source_offsets[k], target_offsets[k]
        both = forward[t : target_offsets[k + 1]], backward[s : source_offsets[k + 1]]
        counts[k] = symmetrize(both[0], both[1], links[s + t :])
