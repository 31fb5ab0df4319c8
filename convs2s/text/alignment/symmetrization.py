"""Symmetrization: merge the word alignments of both directions (grow-diag-final-and; Koehn et al., 2003)."""
# mypy: disable-error-code="untyped-decorator"

import numpy as np

from convs2s.base.compilation import compiled
from convs2s.ids.encoded import Ids, Offsets


@compiled()
def symmetrize(forward: Ids, backward: Ids, links: Ids) -> int:
    """Write the links that grow-diag-final-and derives from both directions, identical to those of `atools`.

    Links are tried in order of source, then target position.

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
    step = 0
    while step < 4:
        grown = False
        for i in range(len(backward)):
            for j in range(len(forward)):
                in_forward, in_backward = forward[j] == i, backward[i] == j
                if accepted[i + 1, j + 1] or not (in_forward or in_backward):
                    continue
                source_free, target_free = not source_linked[i], not target_linked[j]
                if step == 0:  # intersection
                    accepts = in_forward and in_backward
                elif step == 1:  # grow-diag, until nothing changes: a neighbor of a link, even diagonally
                    accepts = (source_free or target_free) and accepted[i : i + 3, j : j + 3].any()
                else:  # final-and, for one direction, then the other
                    accepts = source_free and target_free and (in_forward if step == 2 else in_backward)
                if accepts:
                    accepted[i + 1, j + 1] = True
                    source_linked[i] = target_linked[j] = True
                    grown = True
        if step != 1 or not grown:
            step += 1
    count = 0
    for i in range(len(backward)):  # argwhere and an assignment of arrays take numba five seconds to compile
        for j in range(len(forward)):
            if accepted[i + 1, j + 1]:
                links[count, 0], links[count, 1] = i, j
                count += 1
    return count


@compiled()
def symmetrize_pairs(
    first: int, last: int, source_offsets: Offsets, target_offsets: Offsets,
    forward: Ids, backward: Ids, links: Ids, counts: Offsets,
) -> None:  # fmt: skip
    """Symmetrize sentence pairs [first, last), and write the number of links of each to `counts`.

    The links of pair k begin in `links` at the sum of its two sides' offsets, less that of the first offsets.
    """
    begin = source_offsets[0] + target_offsets[0]
    for k in range(first, last):
        s, t = source_offsets[k], target_offsets[k]
        source_of = forward[t : target_offsets[k + 1]]
        target_of = backward[s : source_offsets[k + 1]]
        counts[k] = symmetrize(source_of, target_of, links[s + t - begin :])
