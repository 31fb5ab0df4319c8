"""What beam search and sampling share: the steps of a model, over the unfinished sentences of a batch."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Bool, Float, Float32, Int, Int64
from numpy.typing import NDArray
from torch import Tensor

from convs2s.config.translate import TranslateParams
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


class Path(NamedTuple):
    """A finished hypothesis and the way to it.

    Attributes:
        tokens: EOS last.
        rows: for each token, the row that it extended at its step.
        log_likelihood: in nats, including that of EOS.
    """

    tokens: list[int]
    rows: list[int]
    log_likelihood: float


class Attended(NamedTuple):
    """What the rows of a step attend to.

    Attributes:
        sources: the source position attended to most, except that of EOS (T34).
        at_end: whether EOS gets even more attention.
        weights: all of the attention.
    """

    sources: Int64[Tensor, "R"]
    at_end: Bool[Tensor, "R"]
    weights: Float[Tensor, "R S"]


class History:
    """The steps of a batch: the tokens of each live hypothesis, and what every row attended to.

    Attributes:
        tokens: (R, T), of each live hypothesis, in the order of its rows.
        rows: (R, T), for each of these tokens, the row that it extended at its step.
        sources, at_end: for each step, those of `Attended`, as arrays.
        weights: for each step, (R, S), if attention is kept, else nothing.
    """

    def __init__(self, hypotheses: int, keep_attention: bool) -> None:
        self.tokens: NDArray[np.int64] = np.zeros((hypotheses, 0), np.int64)
        self.rows: NDArray[np.int64] = np.zeros((hypotheses, 0), np.int64)
        self.keep_attention = keep_attention
        self.sources: list[NDArray[np.int64]] = []
        self.at_end: list[NDArray[np.bool_]] = []
        self.weights: list[NDArray[np.float32]] = []

    def record(self, attended: Attended) -> None:
        """Record what the rows of a step attended to."""
        self.sources.append(attended.sources.cpu().numpy())
        self.at_end.append(attended.at_end.cpu().numpy())
        if self.keep_attention:
            self.weights.append(attended.weights.float().cpu().numpy())

    def extend(self, rows: NDArray[np.int64], tokens: NDArray[np.int64]) -> None:
        """Replace the live hypotheses by these: tokens that extend rows."""
        self.tokens = np.concatenate([self.tokens[rows], tokens[:, None]], axis=1)
        self.rows = np.concatenate([self.rows[rows], rows[:, None]], axis=1)

    def finish(self, row: int, log_likelihood: float) -> Path:
        """Return the path of a live hypothesis that EOS finishes."""
        return Path([*self.tokens[row].tolist(), EOS], [*self.rows[row].tolist(), row], log_likelihood)


def follow(path: Path, steps: Sequence[NDArray[Any]]) -> list[Any]:
    """Return, for each token of a path, the value of the row that it extended.

    Args:
        steps: for each step, the values of all rows.
    """
    return [values[row] for values, row in zip(steps, path.rows, strict=False)]


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
        lengths: of the live sentences, in source tokens, EOS included.
        words: (B, S), for the live sentences: 1 at each source token but EOS, 0 elsewhere.
        limits: for each sentence of the whole batch, the most tokens in a hypothesis, EOS excluded.
        alive: for each live sentence, its index in the whole batch.
        finished: for each sentence of the whole batch, its finished hypotheses.
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
        self.prefixes = prefixes
        self.step = 0
        self.limits = np.asarray(max_lengths, dtype=np.int64)
        self.alive: NDArray[np.int64] = np.arange(len(source))
        self.lengths = (source != PAD).sum(dim=1)
        positions = torch.arange(source.shape[1], device=source.device)
        self.words = (positions < self.lengths[:, None] - 1).float()
        self.source_lengths = self.lengths.tolist()
        self.finished: list[list[Path]] = [[] for _ in source]
        self.history = History(len(source) * search.first_beams, search.keep_attention)

    def find_forced(self) -> NDArray[np.bool_]:
        """Return which sentences must end at this step."""
        return self.limits[self.alive] <= self.step

    def list_allowed(self, beams: int) -> tuple[NDArray[np.int64], list[int]]:
        """Return the next tokens that are allowed, as `find_likeliest` takes them.

        First, for each row, the only allowed token: the next one of its prefix or, at its maximum length,
        EOS. A row with -1 may take any token but those returned second, which are excluded.
        """
        only = np.where(self.find_forced(), EOS, -1)
        if self.prefixes:
            for sentence, i in enumerate(self.alive):
                if self.step < len(self.prefixes[i]):
                    only[sentence] = self.prefixes[i][self.step]
        excluded = [PAD, EOS] if self.step < self.search.params.min_length else [PAD]
        return only.repeat(beams), excluded

    def find_attended(self, attention: Float[Tensor, "R S"]) -> Attended:
        """Return what each row attends to."""
        grid = attention.view(len(self.words), -1, attention.shape[1])  # (B, H, S), H the same for all
        most, sources = (grid * self.words[:, None]).max(dim=2)
        ends = (self.lengths - 1)[:, None, None].expand(-1, grid.shape[1], 1)
        at_end = grid.gather(2, ends).squeeze(2) > most
        return Attended(sources.flatten(), at_end.flatten(), attention)

    def check_numbers(self, totals: NDArray[np.float32]) -> None:
        """Raise ValueError for the first NaN; NaN sorts first, so the best candidates show it."""
        bad = np.flatnonzero(np.isnan(totals).any(axis=1))
        if len(bad):
            raise nan_error(self.step, int(self.alive[bad[0]]))

    def finish(self, sentence: int, row: int, total: float) -> None:
        """Record that EOS finishes a row's hypothesis, with its log-likelihood, unless there are enough."""
        finished = self.finished[self.alive[sentence]]
        if len(finished) < self.search.wanted:
            finished.append(self.history.finish(row, total))

    def find_going(self) -> NDArray[np.int64]:
        """Return which sentences stay after this step: all while few are done, none once all are done."""
        wanted = self.search.wanted
        done = np.array([len(self.finished[i]) >= wanted for i in self.alive]) | self.find_forced()
        going = np.flatnonzero(~done)
        if len(going) and np.count_nonzero(done) < IDLE_SHARE * len(done):
            return np.arange(len(done))
        return going

    def keep(self, going: NDArray[np.int64], extension: Extension) -> None:
        """Keep these live sentences, and their hypotheses after a step."""
        self.step += 1
        self.history.extend(extension.rows.ravel(), extension.tokens.ravel())
        if len(going) < len(self.alive):
            index = torch.as_tensor(going, device=self.lengths.device)
            self.memory = self.memory.select(index)
            self.words = self.words[index]
            self.lengths = self.lengths[index]
            self.alive = self.alive[going]

    def best(self) -> list[list[SearchResult]]:
        """Return each sentence's n_best hypotheses, best first; ties go to the one finished first."""
        results: list[list[SearchResult]] = []
        for source_length, paths in zip(self.source_lengths, self.finished, strict=True):
            ranked = sorted(paths, key=self._score, reverse=True)[: self.search.params.n_best]
            results.append([self._result(source_length, path) for path in ranked])
        return results

    def _score(self, path: Path) -> float:
        """Return log-likelihood / |y|^alpha, where |y| includes EOS."""
        return path.log_likelihood / float(len(path.tokens) ** self.search.params.alpha)

    def _result(self, source_length: int, path: Path) -> SearchResult:
        """Return a finished hypothesis with what it attended to."""
        sources = [NOWHERE] * len(path.tokens)
        if source_length > 1:
            sources = [int(position) for position in follow(path, self.history.sources)]
        attention = None
        if self.search.keep_attention:
            attention = np.stack(follow(path, self.history.weights))[:, :source_length]
        return SearchResult(
            tokens=path.tokens,
            log_likelihood=path.log_likelihood,
            score=self._score(path),
            sources=sources,
            at_end=[bool(at_end) for at_end in follow(path, self.history.at_end)],
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
        self, batch: LiveBatch, scores: Float[Tensor, "R V"] | LazyScores, totals: Float[Tensor, "B H"]
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
        totals = torch.zeros(len(source), self.first_beams, device=source.device)
        tokens = torch.full((totals.numel(),), EOS, device=source.device)
        state = model.start(len(tokens))
        while True:
            scores, attention, state = model.step(tokens, batch.memory, state)
            attended = batch.find_attended(attention)
            extension = self.extend(batch, scores, totals)
            batch.history.record(attended)
            going = batch.find_going()
            if not len(going):
                return batch.best()
            extension = extension.select(going)
            batch.keep(going, extension)
            parents = extension.rows.ravel()
            if not np.array_equal(parents, np.arange(len(attention))):  # greedy search reorders nothing
                state = state.select(on_device(parents))
            tokens = on_device(extension.tokens.ravel())
            totals = on_device(extension.totals)
