"""The steps of a search, and tracing its finished hypotheses back through them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from convs2s.text.vocabulary.vocabulary import EOS


@dataclass(frozen=True)
class Step:
    """The record of one step: a row per extended hypothesis; in `parents` and `tokens`, per kept one."""

    sources: NDArray[np.int64]
    at_end: NDArray[np.bool_]
    attention: NDArray[np.float32] | None
    parents: NDArray[np.int64]  # for each kept hypothesis, the row that it extends
    tokens: NDArray[np.int64]  # and the token that it adds


@dataclass(frozen=True)
class Paths:
    """The paths of N hypotheses through T steps; entries beyond a hypothesis's last step are meaningless.

    Attributes:
        rows: the row that each step extends.
        tokens: the token that it adds.
        sources: `Step.sources` of that row.
        at_end: `Step.at_end` of that row.
    """

    rows: NDArray[np.int64]
    tokens: NDArray[np.int64]
    sources: NDArray[np.int64]
    at_end: NDArray[np.bool_]


def trace(steps: Sequence[Step], lasts: NDArray[np.int64], rows: NDArray[np.int64]) -> Paths:
    """Follow all hypotheses at once, back from their EOS to their first token.

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
