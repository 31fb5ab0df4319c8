"""What beam search and sampling share: the steps of a model, over the unfinished sentences of a batch."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float, Float32, Int, Int64
from numpy.typing import NDArray
from torch import Tensor

from convs2s.config.translate import TranslateParams
from convs2s.decode.length_normalization import final_score
from convs2s.decode.token_scores import LazyScores
from convs2s.ids.vocabulary import EOS, PAD

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


@runtime_checkable
class SearchModel(Protocol):
    """What a search needs from a model: the plain one, the engine's, or an ensemble of these.

    Memory and state have a row per sentence or hypothesis; `select(rows)` returns these rows in this order.
    """

    @property
    def max_source_tokens(self) -> int | None:
        """Longest source sentence, EOS included; None if unlimited."""

    @property
    def max_target_tokens(self) -> int | None:
        """Longest target sentence, EOS included; None if unlimited."""

    def restrict(self, tokens: Int[Tensor, "N"], /) -> "SearchModel":
        """Return the same model over only these target tokens (§5.4); all other weights are shared."""

    def encode(self, source: Tensor, /) -> Any:
        """Encode padded source sentences (B, S) into the memory that the steps attend to."""

    def start(self, rows: int, /) -> Any:
        """Return the state before the first step."""

    def step(self, tokens: Tensor, memory: Any, state: Any, /) -> tuple[Tensor | LazyScores, Tensor, Any]:
        """Advance R hypotheses, grouped by sentence, by a token.

        Returns:
            Logits (R, V), now or as `LazyScores`; attention (R, S); and the next state.
        """


class Extension(NamedTuple):
    """The hypotheses after a step: the same number H for each live sentence.

    Attributes:
        rows: (B, H), the rows that they extend.
        tokens: (B, H), the tokens that they add.
        totals: (B, H), their log-likelihoods.
    """

    rows: NDArray[np.int64]
    tokens: NDArray[np.int64]
    totals: NDArray[np.float32]

    def select(self, sentences: NDArray[np.int64]) -> "Extension":
        """Return the hypotheses of these sentences, in this order."""
        return Extension(self.rows[sentences], self.tokens[sentences], self.totals[sentences])


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

    def trace(self, ending: Ending) -> tuple[list[int], list[int]]:
        """Return a finished hypothesis's tokens and, for each of them, the row that it extended."""
        tokens, rows = [EOS], [ending.row]
        for step in range(ending.step - 1, -1, -1):
            tokens.append(int(self.tokens[step][rows[-1]]))
            rows.append(int(self.rows[step][rows[-1]]))
        return tokens[::-1], rows[::-1]


def follow(rows: Sequence[int], steps: Sequence[NDArray[Any]]) -> list[Any]:
    """Return, for each step, the value of a row.

    Args:
        rows: for each step, the row.
        steps: for each step, and maybe later ones, the values of all rows.
    """
    return [values[row] for values, row in zip(steps, rows, strict=False)]


def nan_error(step: int, sentence: int) -> ValueError:
    """Return the error for scores that are not numbers; both arguments count from 0."""
    return ValueError(
        f"The model's scores for token {step + 1} of sentence {sentence + 1} of the batch are not "
        "numbers (NaN). Expected finite scores: has training diverged, or is the weights file "
        "damaged? Check the training curves, or lower train.learning_rate and train again."
    )


class LiveBatch:
    """A batch that is being searched. Sentences leave it when they are done; then the others move up.

    So a sentence has two numbers: its index in the whole batch, and its index among the live sentences.

    Attributes:
        step: number of the current step, from 0.
        memory: the encoder output of the live sentences.
        ends: of the live sentences, the source position of EOS.
        words: (B, 1, S), for the live sentences: 1 at each source token but EOS, 0 elsewhere.
        limits: for each sentence of the whole batch, the most tokens in a hypothesis, EOS excluded.
        alive: for each live sentence, its index in the whole batch.
        forced: for each live sentence, whether it must end at this step.
        finished: for each sentence of the whole batch, its finished hypotheses.
        is_done: for each sentence of the whole batch, whether enough hypotheses are finished.
        history: the steps so far.
    """

    def __init__(
        self,
        search: "Search",
        memory: Any,
        source: Int64[Tensor, "B S"],
        max_lengths: Sequence[int],
        prefixes: Sequence[Sequence[int]],
    ) -> None:
        self.search = search
        self.memory = memory
        self.device = source.device
        self.prefixes = prefixes
        self.longest_prefix = max(map(len, prefixes), default=0)
        self.step = 0
        self.limits = np.asarray(max_lengths, dtype=np.int64)
        self.alive: NDArray[np.int64] = np.arange(len(source))
        self.forced: NDArray[np.bool_] = self.limits <= 0
        self.ends: NDArray[np.int64] = (source != PAD).sum(dim=1).cpu().numpy() - 1
        self.words = (np.arange(source.shape[1]) < self.ends[:, None, None]).astype(np.float32)
        self.source_lengths = (self.ends + 1).tolist()
        self.finished: list[list[Ending]] = [[] for _ in source]
        self.is_done: NDArray[np.bool_] = np.zeros(len(source), np.bool_)
        self.history = History()

    def list_allowed(self, beams: int) -> tuple[NDArray[np.int64], list[int]]:
        """Return the next tokens that are allowed, as `find_best` takes them.

        First, for each row, the only allowed token: the next one of its prefix or, at its maximum length,
        EOS. A row with -1 may take any token but those returned second, which are excluded.
        """
        only = np.where(self.forced, EOS, -1)
        if self.step < self.longest_prefix:
            for sentence, i in enumerate(self.alive):
                if self.step < len(self.prefixes[i]):
                    only[sentence] = self.prefixes[i][self.step]
        excluded = [PAD, EOS] if self.step < self.search.params.min_length else [PAD]
        return only.repeat(beams), excluded

    def record(self, attention: Float[Tensor, "R S"]) -> None:
        """Record what the rows of this step attend to."""
        weights = attention.float().cpu().numpy()
        grid = weights.reshape(len(self.words), -1, weights.shape[1])  # (B, H, S), H the same for all
        of_words = grid * self.words
        sources = of_words.argmax(axis=2)
        at_end = grid[np.arange(len(grid)), :, self.ends] > of_words.max(axis=2)
        self.history.sources.append(sources.ravel())
        self.history.at_end.append(at_end.ravel())
        if self.search.keep_attention:
            self.history.weights.append(weights)

    def check_numbers(self, totals: NDArray[np.float32]) -> None:
        """Raise ValueError for the first NaN; NaN sorts first, so the best candidates show it."""
        bad = np.isnan(totals)
        if bad.any():
            raise nan_error(self.step, int(self.alive[bad.any(axis=1).argmax()]))

    def finish(self, sentence: int, row: int, total: float) -> None:
        """Record that EOS finishes a row's hypothesis, with its log-likelihood, unless there are enough."""
        i = self.alive[sentence]
        finished = self.finished[i]
        if len(finished) < self.search.wanted:
            finished.append(Ending(self.step, row, total))
            self.is_done[i] = len(finished) == self.search.wanted

    def find_going(self) -> NDArray[np.int64]:
        """Return which sentences stay after this step: all while few are done, none once all are done."""
        done = self.is_done[self.alive] | self.forced
        going = np.flatnonzero(~done)
        if len(going) and len(done) - len(going) < IDLE_SHARE * len(done):
            return np.arange(len(done))
        return going

    def keep(self, going: NDArray[np.int64], extension: Extension) -> None:
        """Keep these live sentences, and their hypotheses after a step."""
        self.step += 1
        self.history.rows.append(extension.rows.ravel())
        self.history.tokens.append(extension.tokens.ravel())
        if len(going) < len(self.alive):
            self.memory = self.memory.select(torch.as_tensor(going, device=self.device))
            self.words = self.words[going]
            self.ends = self.ends[going]
            self.alive = self.alive[going]
        self.forced = self.limits[self.alive] <= self.step

    def best(self) -> list[list[SearchResult]]:
        """Return each sentence's n_best hypotheses, best first; ties go to the one finished first."""
        results: list[list[SearchResult]] = []
        for source_length, endings in zip(self.source_lengths, self.finished, strict=True):
            ranked = sorted(endings, key=self._score, reverse=True)[: self.search.params.n_best]
            results.append([self._result(source_length, ending) for ending in ranked])
        return results

    def _score(self, ending: Ending) -> float:
        """Return what a hypothesis is ranked by."""
        return final_score(ending.log_likelihood, ending.step + 1, self.search.params.alpha)

    def _result(self, source_length: int, ending: Ending) -> SearchResult:
        """Return a finished hypothesis with what it attended to."""
        tokens, rows = self.history.trace(ending)
        sources = [NOWHERE] * len(tokens)
        if source_length > 1:
            sources = [int(position) for position in follow(rows, self.history.sources)]
        attention = None
        if self.search.keep_attention:
            attention = np.stack(follow(rows, self.history.weights))[:, :source_length]
        return SearchResult(
            tokens=tokens,
            log_likelihood=ending.log_likelihood,
            score=self._score(ending),
            sources=sources,
            at_end=[bool(at_end) for at_end in follow(rows, self.history.at_end)],
            attention=attention,
        )


class Search(ABC):
    """A way to translate a batch: it extends all hypotheses token by token.

    Attributes:
        wanted: finished hypotheses per sentence.
        first_beams: hypotheses per sentence at the first step: one, if all would be the same.
    """

    def __init__(self, params: TranslateParams, keep_attention: bool) -> None:
        self.params = params
        self.keep_attention = keep_attention
        self.wanted = params.beam_size
        self.first_beams = 1

    @abstractmethod
    def extend(
        self,
        batch: LiveBatch,
        scores: Float[Tensor, "R V"] | LazyScores,
        totals: Float32[np.ndarray, "B H"],
    ) -> Extension:
        """Return the hypotheses after a step; record those that it finishes.

        Args:
            scores: of the next tokens, as a model returns them.
            totals: log-likelihood of each hypothesis so far.
        """

    @torch.inference_mode()
    def search(
        self,
        model: SearchModel,
        source: Int64[Tensor, "B S"],
        max_lengths: Sequence[int],
        prefixes: Sequence[Sequence[int]] = (),
    ) -> list[list[SearchResult]]:
        """Return the n_best hypotheses of each sentence, best first; a ValueError if scores are not numbers.

        Args:
            source: each row ends with EOS, followed by padding.
            max_lengths: for each sentence, the most tokens in a hypothesis, EOS excluded.
            prefixes: for each sentence, the tokens that its hypotheses begin with, within its max_length;
                their log-likelihood counts. Empty: no sentence has a prefix.
        """
        batch = LiveBatch(self, model.encode(source), source, max_lengths, prefixes)
        on_device = partial(torch.as_tensor, device=source.device)
        totals: NDArray[np.float32] = np.zeros((len(source), self.first_beams), np.float32)
        tokens: NDArray[np.int64] = np.full(totals.size, EOS)
        state = model.start(totals.size)
        while True:
            scores, attention, state = model.step(on_device(tokens), batch.memory, state)
            extension = self.extend(batch, scores, totals)
            batch.record(attention)
            going = batch.find_going()
            if not len(going):
                return batch.best()
            if len(going) < len(batch.alive):
                extension = extension.select(going)
            batch.keep(going, extension)
            parents = extension.rows.ravel()
            if not np.array_equal(parents, np.arange(len(attention))):  # greedy search reorders nothing
                state = state.select(on_device(parents))
            tokens = extension.tokens.ravel()
            totals = np.ascontiguousarray(extension.totals)
