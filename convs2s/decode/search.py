"""What beam search and sampling share: the steps of a model, over the unfinished sentences of a batch."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float, Float32, Int, Int64
from numpy.typing import NDArray
from torch import Tensor

from convs2s.config.translate import TranslateParams
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

    def step(self, tokens: Tensor, memory: Any, state: Any, /) -> tuple[Any, Tensor, Any]:
        """Advance R hypotheses, grouped by sentence, by a token.

        Returns:
            Logits (R, V), now or as `LazyScores`; attention (R, S); and the next state.
        """


class LiveBatch:
    """The unfinished sentences of a batch with their hypotheses, and all that is finished.

    Attributes:
        step: number of the current step, from 0.
        memory: the encoder output of the unfinished sentences.
        alive: their indices in the whole batch.
        ends: of each sentence of the whole batch, the finished hypotheses.
        paths: (R, T, 4), a token, the row that it extended, and what this row attended to; for each live
            hypothesis and step.
        steps: for each step, what its rows attended to, from `find_attended`.
    """

    def __init__(
        self,
        search: "Search",
        memory: Any,
        source: Int64[Tensor, "B S"],
        max_lengths: Sequence[int],
        prefixes: Sequence[Sequence[int]],
    ) -> None:
        self.search, self.memory, self.prefixes, self.step = search, memory, prefixes, 0
        self.limits = np.asarray(max_lengths, dtype=np.int64)
        self.alive: NDArray[np.int64] = np.arange(len(source))
        self.lengths = (source != PAD).sum(dim=1)
        positions = torch.arange(source.shape[1], device=source.device)
        self.words = (positions < self.lengths[:, None] - 1).float()  # (B, S): 0 at EOS and padding
        self.source_lengths = self.lengths.tolist()
        self.ends: list[list[tuple[float, NDArray[np.int32], int]]] = [[] for _ in source]
        self.paths = np.zeros((len(source) * search.first_beams, 0, 4), np.int32)
        self.steps: list[list[NDArray[Any]]] = []

    def find_forced(self) -> NDArray[np.bool_]:
        """Return which sentences must end at this step."""
        return self.limits[self.alive] <= self.step

    def list_allowed(self, beams: int) -> tuple[NDArray[np.int64], list[int]]:
        """Return the next tokens that are allowed, as `find_likeliest` takes them.

        That is each row's only token, the next one of its prefix, or EOS, else -1; and those excluded.
        """
        only = np.where(self.find_forced(), EOS, -1)
        for row, i in enumerate(self.alive if self.prefixes else ()):
            if self.step < len(self.prefixes[i]):
                only[row] = self.prefixes[i][self.step]
        return only.repeat(beams), [PAD, EOS] if self.step < self.search.params.min_length else [PAD]

    def find_attended(self, attention: Float[Tensor, "R S"]) -> list[Tensor]:
        """Return the most attended position except EOS (T34), whether EOS gets even more; all if kept."""
        grid = attention.view(len(self.words), -1, attention.shape[1])  # (B, H, S), H the same for all
        most, sources = (grid * self.words[:, None]).max(dim=2)
        ends = (self.lengths - 1)[:, None, None].expand(-1, grid.shape[1], 1)
        attended = [sources.flatten(), (grid.gather(2, ends).squeeze(2) > most).flatten()]
        return [*attended, attention.float()] if self.search.keep_attention else attended

    def check_numbers(self, totals: NDArray[np.float32]) -> None:
        """Raise ValueError for the first NaN; NaN sorts first, so the best candidates show it."""
        bad = np.flatnonzero(np.isnan(totals).any(axis=1))
        if len(bad):
            sentence = self.alive[bad[0]] + 1
            raise ValueError(
                f"The model's scores for token {self.step + 1} of sentence {sentence} of the batch are not "
                "numbers (NaN). Expected finite scores: has training diverged, or is the weights file "
                "damaged? Check the training curves, or lower train.learning_rate and train again."
            )

    def finish(self, sentence: int, row: int, total: float) -> None:
        """Record that EOS finishes a row's hypothesis, with its log-likelihood, unless there are enough."""
        ends = self.ends[self.alive[sentence]]
        if len(ends) < self.search.wanted:
            ends.append((total, self.paths[row], row))

    def find_going(self) -> NDArray[np.int64]:
        """Return which sentences stay after this step: all while few are done, none once all are done."""
        wanted = self.search.wanted
        done = np.array([len(self.ends[i]) >= wanted for i in self.alive]) | self.find_forced()
        going = np.flatnonzero(~done)
        few = 0 < len(done) - len(going) < IDLE_SHARE * len(done)
        return np.arange(len(done)) if few and len(going) else going

    def keep(self, going: NDArray[np.int64], parents: NDArray[np.int64], tokens: NDArray[np.int64]) -> None:
        """Keep these sentences, by their current row, and these hypotheses: tokens that extend rows."""
        self.step += 1
        columns = tokens, parents, *(part[parents] for part in self.steps[-1][:2])
        newest = np.array(columns, dtype=np.int32).T[:, None]
        self.paths = np.concatenate([self.paths[parents], newest], axis=1)
        if len(going) < len(self.alive):
            index = torch.as_tensor(going, device=self.lengths.device)
            self.memory, self.words = self.memory.select(index), self.words[index]
            self.lengths, self.alive = self.lengths[index], self.alive[going]

    def best(self) -> list[list[SearchResult]]:
        """Return each sentence's n_best hypotheses, best first; ties go to the one finished first."""
        alpha, n_best = self.search.params.alpha, self.search.params.n_best
        results: list[list[SearchResult]] = []
        for length, ends in zip(self.source_lengths, self.ends, strict=True):
            scored = [(total / (len(path) + 1) ** alpha, total, path, row) for total, path, row in ends]
            ranked = sorted(scored, key=lambda end: -end[0])[:n_best]
            results.append([self._result(length, *end) for end in ranked])
        return results

    def _result(
        self, length: int, score: float, total: float, path: NDArray[np.int32], row: int
    ) -> SearchResult:
        source, at_end = (part[row].item() for part in self.steps[len(path)][:2])
        newest = EOS, row, source, at_end
        tokens, rows, sources, ends = ([*old, new] for old, new in zip(path.T.tolist(), newest, strict=True))
        attention = None
        if self.search.keep_attention:
            weights = zip((step[2] for step in self.steps), rows, strict=False)
            attention = np.stack([of_rows[row, :length] for of_rows, row in weights])
        return SearchResult(
            tokens=tokens,
            log_likelihood=total,
            score=score,
            sources=sources if length > 1 else [NOWHERE] * len(rows),
            at_end=list(map(bool, ends)),
            attention=attention,
        )


class Search(ABC):
    """A way to translate a batch: it extends all hypotheses token by token.

    Attributes:
        wanted: finished hypotheses per sentence.
        first_beams: hypotheses per sentence at the first step: one, if all would be the same.
    """

    def __init__(self, params: TranslateParams, keep_attention: bool) -> None:
        self.params, self.keep_attention = params, keep_attention
        self.wanted, self.first_beams = params.beam_size, 1

    @abstractmethod
    def extend(
        self, batch: LiveBatch, scores: Any, totals: Float[Tensor, "B H"]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]:
        """Return the hypotheses after a step, the same number per sentence; record those that it finishes.

        Args:
            scores: of the next tokens, as a model returns them.
            totals: log-likelihood of each hypothesis so far.

        Returns:
            (B, H): the rows that they extend, the tokens that they add, and their log-likelihoods.
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
        totals = torch.zeros(len(source), self.first_beams, device=source.device)
        state, on_device = model.start(totals.numel()), partial(torch.as_tensor, device=source.device)
        tokens = torch.full((totals.numel(),), EOS, device=source.device)
        while True:
            scores, attention, state = model.step(tokens, batch.memory, state)
            attended = batch.find_attended(attention)
            extended = self.extend(batch, scores, totals)
            batch.steps.append([part.cpu().numpy() for part in attended])
            going = batch.find_going()
            if not len(going):
                return batch.best()
            parents, ids, sums = extended[0][going].ravel(), extended[1][going].ravel(), extended[2][going]
            batch.keep(going, parents, ids)
            if not np.array_equal(parents, np.arange(len(attention))):  # greedy search reorders nothing
                state = state.select(on_device(parents))
            tokens, totals = on_device(ids), on_device(sums)
