"""The steps of a search, and how finished hypotheses are traced back through them (§4.3)."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from convs2s.ids.vocabulary import EOS


class Ending(NamedTuple):
    """The end of a finished hypothesis.

    Attributes:
        step: at which EOS finishes it, from 0.
        row: that EOS extends.
        log_likelihood: in nats, including that of EOS.
    """

    step: int
    row: int
    log_likelihood: float


class History:
    """The steps of a batch: how the live hypotheses were extended, and what every row attended to.

    Attributes:
        rows, tokens: for each step but the last, (R,), the rows that the hypotheses of the next one extend,
            and their tokens.
        sources: for each step, (R,), the source position attended to most, except that of EOS (T34).
        at_end: for each step, (R,), whether EOS got even more attention.
        weights: for each step, (R, S), if attention is kept, else nothing.
    """

    def __init__(self) -> None:
        self.rows: list[NDArray[np.int64]] = []
        self.tokens: list[NDArray[np.int64]] = []
        self.sources: list[NDArray[np.int64]] = []
        self.at_end: list[NDArray[np.bool_]] = []
        self.weights: list[NDArray[np.float32]] = []

    def trace(self, endings: Sequence[Ending]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Follow N finished hypotheses back to their first tokens, all at once.

        Returns:
            (T, N), for each step and hypothesis, its token and the row that it extends. What follows a
            hypothesis's EOS has no meaning.
        """
        last = np.array([ending.step for ending in endings])
        rows = np.empty((last.max() + 1, len(endings)), np.int64)
        rows[:] = [ending.row for ending in endings]
        tokens = np.full_like(rows, EOS)
        for step in range(len(rows) - 2, -1, -1):
            is_before, following = last > step, rows[step + 1]
            for found, steps in ((tokens, self.tokens), (rows, self.rows)):
                np.copyto(found[step], steps[step].take(following, mode="clip"), where=is_before)
        return tokens, rows


def trace_back(rows: NDArray[np.int64], steps: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Return (N, T, ...), the values of N hypotheses at each step.

    Args:
        rows: (T, N), for each step and hypothesis, its row; from its end on, any number.
        steps: for each step, and maybe later ones, the values of all rows.
    """
    pairs = zip(rows, steps, strict=False)
    return np.stack([values.take(row, axis=0, mode="clip") for row, values in pairs], axis=1)
