"""The steps of a search, and the way of its finished hypotheses back through them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from convs2s.text.vocabulary.vocabulary import EOS


@dataclass(frozen=True)
class Step:
    """The record of one step: a row per hypothesis extended; in `parents` and `tokens`, per one kept."""

    sources: NDArray[np.int64]
    at_end: NDArray[np.bool_]
    attention: NDArray[np.float32] | None
    parents: NDArray[np.int64]  # of each hypothesis kept: the row that it extends
    tokens: NDArray[np.int64]  # and the token added


@dataclass(frozen=True)
class Paths:
    """The ways of N hypotheses through T steps; what stands beyond a hypothesis's last step has no meaning.

    Attributes:
        rows: the row that each step extends.
        tokens: the token that it adds.
        sources: as of `Step`, of that row.
        at_end: likewise.
    """

    rows: NDArray[np.int64]
    tokens: NDArray[np.int64]
    sources: NDArray[np.int64]
    at_end: NDArray[np.bool_]


def trace(steps: Sequence[Step], lasts: NDArray[np.int64], rows: NDArray[np.int64]) -> Paths:
    """Follow hypotheses back from their EOS to their first token, all at a time.

    Args:
        steps: of the search.
        lasts: the step that finished each hypothesis, from 0.
        rows: the row that it extended.
    """
    shape = len(lasts), int(lasts.max(initial=-1)) + 1
    nothing = np.zeros(shape, np.int64)
    paths = Paths(nothing, nothing.copy(), nothing.copy(), np.zeros(shape, np.bool_))
    every = np.arange(len(lasts))
    paths.rows[every, lasts], paths.tokens[every, lasts] = rows, EOS
    for number in reversed(range(shape[1])):
        step, through = steps[number], np.flatnonzero(lasts >= number)
        at = paths.rows[through, number]
        paths.sources[through, number], paths.at_end[through, number] = step.sources[at], step.at_end[at]
        if number:
            before = steps[number - 1]
            paths.rows[through, number - 1] = before.parents[at]
            paths.tokens[through, number - 1] = before.tokens[at]
    return paths
