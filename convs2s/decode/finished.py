"""What a search has finished: recorded step by step, and traced back to whole hypotheses at the end."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32
from numpy.typing import NDArray

from convs2s.ids.vocabulary import EOS

NOWHERE = -1
IDLE_SHARE = 1 / 16
"""Share of a batch that may be done but stay in it, because dropping a sentence copies all the others."""


@dataclass(frozen=True)
class SearchResult:
    """A finished hypothesis, in ids.

    Attributes:
        tokens: target ids, EOS last.
        log_likelihood: in nats, including that of EOS.
        score: log_likelihood / |y|^alpha, where |y| includes EOS.
        sources: for each token, the source position attended to most, excluding the source's EOS (T34);
            NOWHERE if the source has no other token.
        at_end: for each token, whether the source's EOS got even more attention.
        attention: (T, S) weights, the mean of all layers; None unless requested.
    """

    tokens: list[int]
    log_likelihood: float
    score: float
    sources: list[int]
    at_end: list[bool]
    attention: Float32[np.ndarray, "T S"] | None


@dataclass(frozen=True)
class SearchSettings:
    """What is searched for.

    Attributes:
        beam_size: hypotheses kept per sentence; 1 is greedy search.
        alpha: exponent of the length by which final scores are divided.
        min_length: fewest tokens, EOS excluded.
        n_best: hypotheses returned per sentence.
        legacy_eos: accept EOS anywhere among the 2 * beam_size candidates, as the Lua code does.
        keep_attention: return each hypothesis's attention.
    """

    beam_size: int
    alpha: float
    min_length: int
    n_best: int
    legacy_eos: bool
    keep_attention: bool


@dataclass(frozen=True)
class Step:
    """The record of one step: a row per extended hypothesis; in `parents` and `tokens`, per kept one."""

    sources: NDArray[np.int64]
    at_end: NDArray[np.bool_]
    attention: NDArray[np.float32] | None
    parents: NDArray[np.int64]  # for each kept hypothesis, the row that it extends
    tokens: NDArray[np.int64]  # and the token that it adds


def trace(steps: Sequence[Step], lasts: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Follow N hypotheses at once, back from their EOS to their first token.

    Args:
        lasts: the step that finished each hypothesis, from 0.
        rows: the row that it extended.

    Returns:
        (4, N, T): the row that each step extends, the token that it adds, and the row's `sources` and
        `at_end`; meaningless beyond a hypothesis's last step.
    """
    paths = np.zeros((4, len(lasts), int(lasts.max(initial=-1)) + 1), np.int64)
    every = np.arange(len(lasts))
    paths[0, every, lasts], paths[1, every, lasts] = rows, EOS
    for number in reversed(range(paths.shape[2])):
        step, through = steps[number], np.flatnonzero(lasts >= number)
        at = paths[0, through, number]
        paths[2, through, number], paths[3, through, number] = step.sources[at], step.at_end[at]
        if number:
            before = steps[number - 1]
            paths[0, through, number - 1] = before.parents[at]
            paths[1, through, number - 1] = before.tokens[at]
    return paths


class Finished:
    """The finished hypotheses of a batch, and the steps from which their tokens are traced."""

    def __init__(self, source_lengths: list[int], settings: SearchSettings) -> None:
        self.source_lengths = source_lengths
        self.settings = settings
        self.steps: list[Step] = []
        self.ends: list[list[tuple[int, int, float]]] = [[] for _ in source_lengths]  # step, row, total
        self.done = np.zeros(len(source_lengths), np.bool_)

    def add(
        self,
        step: int,
        alive: NDArray[np.int64],
        scores: NDArray[np.float32],
        rows: NDArray[np.int64],
        ids: NDArray[np.int64],
        forced: NDArray[np.bool_],
    ) -> None:
        """Record the hypotheses that EOS finishes, best first, and which sentences are done.

        Args:
            alive: the batch's sentences; those that are done cannot finish more hypotheses.
            scores: log-likelihoods of their candidates, a row per sentence, as in `rows` and `ids`.
            rows: the hypotheses that the candidates continue.
            ids: the candidates' last tokens.
            forced: sentences that end at this step, however few hypotheses are finished.
        """
        beam_size = self.settings.beam_size
        accepted = (ids == EOS) & (scores > -np.inf)
        if not self.settings.legacy_eos:
            accepted[:, beam_size:] = False
        for i, rank in np.argwhere(accepted):
            ends = self.ends[alive[i]]
            if len(ends) < beam_size:
                ends.append((step, int(rows[i, rank]), float(scores[i, rank])))
        enough = np.array([len(self.ends[sentence]) >= beam_size for sentence in alive], dtype=np.bool_)
        self.done[alive] |= enough | forced

    def best(self) -> list[list[SearchResult]]:
        """Return each sentence's hypotheses, best first; ties go to the one finished first."""
        n_best, alpha = self.settings.n_best, self.settings.alpha
        ranked = [sorted(ends, key=lambda end: -end[2] / (end[0] + 1) ** alpha) for ends in self.ends]
        ends = [(i, *end) for i, all_ends in enumerate(ranked) for end in all_ends[:n_best]]
        paths = trace(self.steps, *(np.array([end[place] for end in ends], np.int64) for place in (1, 2)))
        kept = [step.attention for step in self.steps if step.attention is not None]
        results: list[list[SearchResult]] = [[] for _ in self.ends]
        for number, (sentence, last, _, total) in enumerate(ends):
            rows, tokens, sources, at_end = paths[:, number, : last + 1]
            length = self.source_lengths[sentence]
            if length == 1:
                sources = np.full(last + 1, NOWHERE)
            weights = [attention[row, :length] for attention, row in zip(kept, rows, strict=False)]
            results[sentence].append(
                SearchResult(
                    tokens.tolist(),
                    total,
                    total / (last + 1) ** alpha,
                    sources.tolist(),
                    (at_end > 0).tolist(),
                    np.stack(weights) if weights else None,
                )
            )
        return results


def remaining(done: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return which sentences stay in the batch: all of them while few are done, none once all are done."""
    going = np.flatnonzero(~done)
    few = 0 < len(done) - len(going) < IDLE_SHARE * len(done)
    return np.arange(len(done)) if few and len(going) else going


def check_numbers(scores: NDArray[np.float32], alive: NDArray[np.int64], step: int) -> None:
    """Raise ValueError for the first NaN; NaN sorts first, so the best candidates show it."""
    bad = np.flatnonzero(np.isnan(scores).any(axis=1))
    if len(bad):
        raise ValueError(
            f"The model's scores for token {step + 1} of sentence {alive[bad[0]] + 1} of the batch are not "
            "numbers (NaN). Expected finite scores: has training diverged, or is the weights file damaged? "
            "Check the training curves, or lower train.learning_rate and train again."
        )
