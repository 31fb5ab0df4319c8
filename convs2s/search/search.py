"""What beam search and sampling share: steps of a model, over the unfinished sentences of a batch (§4.3).

On a CPU the host looks at each step. A GPU would wait for it, the longer the more sentences a batch has. So
there all hypotheses stay on the device, and the host starts eight steps at a time. Then it copies what they
have found, lists the hypotheses that are finished, and drops sentences that are done. A sentence that is done
before the host looks goes on until then; what it finds is ignored.
"""

import itertools
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Bool, Float, Float32, Int, Int64
from numpy.typing import NDArray
from torch import Tensor

from convs2s.config.translate import TranslateParams
from convs2s.ids.vocabulary import EOS, PAD
from convs2s.search.copies import copy_to_device, copy_to_host
from convs2s.search.history import Ending, History, trace_back
from convs2s.search.token_scores import Allowed, Continuations, LazyScores

NOWHERE = -1
STEPS_ON_DEVICE = 8
"""Steps between two looks of the host at a device. A look waits for it; until then no sentence is dropped."""
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


class Step(NamedTuple):
    """What a step of B sentences finds; arrays, or tensors on a device.

    Attributes:
        totals, rows, tokens: (B, M), of the best continuations, best first.
        next_rows, next_tokens: (B, H), of those that go on, with the same number H for each sentence.
        sources: (B, P), for each hypothesis before the step, the source position attended to most, except
            that of EOS (T34).
        at_end: (B, P), whether EOS got even more attention.
        weights: (B, P, S), all attention; None unless it is kept.
    """

    totals: Any
    rows: Any
    tokens: Any
    next_rows: Any
    next_tokens: Any
    sources: Any
    at_end: Any
    weights: Any


def final_score(log_likelihood: float, length: int, alpha: float) -> float:
    """Return log-likelihood / |y|^alpha, by which finished hypotheses are ranked (§4.3).

    Args:
        length: in tokens, including EOS; 0 for an empty sentence, whose log-likelihood is 0.
    """
    return log_likelihood / float(max(1, length) ** alpha)


class LiveBatch:
    """A batch that is being searched. Sentences leave it when they are done; then the others move up.

    So a sentence has two numbers: its index in the whole batch, and its index among the live sentences.

    Attributes:
        step: number of the next step, from 0.
        last: number of the last step that any sentence may take.
        memory: the encoder output of the live sentences.
        ends: (B, 1), of the live sentences, the source position of EOS.
        words: (B, 1, S), for the live sentences, whether a source position has a token other than EOS.
        limits: for each sentence of the whole batch, the most tokens in a hypothesis, EOS excluded.
        alive: for each live sentence, its index in the whole batch.
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
        self.device = source.device
        self.steps_at_once = search.count_steps(self.device)
        self.memory = memory
        self.prefixes = prefixes
        self.longest_prefix = max(map(len, prefixes), default=0)
        self.step = 0
        self.last = max(max_lengths)
        self.limits = np.asarray(max_lengths, dtype=np.int64)
        self.alive: NDArray[np.int64] = np.arange(len(source))
        ends = (source != PAD).sum(dim=1, keepdim=True) - 1
        self.ends = self.place(ends)
        self.words = self.place((torch.arange(source.shape[1], device=self.device) < ends)[:, None])
        self.all_ends = ends.flatten()
        self.finished: list[list[Ending]] = [[] for _ in source]
        self.is_done: NDArray[np.bool_] = np.zeros(len(source), np.bool_)
        self.history = History()

    def list_allowed(self, step: int, beams: int) -> Allowed:
        """Return which tokens rows may take at a step, `beams` rows of each sentence.

        A row takes the next token of its prefix, at its maximum length EOS, else any but those excluded.
        """
        only = np.where(self.limits[self.alive] <= step, EOS, NOWHERE)
        if step < self.longest_prefix:
            for sentence, i in enumerate(self.alive):
                if step < len(self.prefixes[i]):
                    only[sentence] = self.prefixes[i][step]
        excluded = [PAD, EOS] if step < self.search.params.min_length else [PAD]
        return Allowed(only.repeat(beams), excluded)

    def place(self, tensor: Tensor) -> Any:
        """Return a tensor where hypotheses are chosen: an array if the host looks at each step."""
        return tensor.cpu().numpy() if self.steps_at_once == 1 else tensor

    def find_attended(self, attention: Float[Tensor, "R S"]) -> tuple[Any, Any, Any]:
        """Return `sources`, `at_end` and `weights` of a step."""
        weights = self.place(attention.float()).reshape(len(self.ends), -1, attention.shape[1])
        # EOS comes after the words, so it is the first of the largest only if it has more than any word.
        return (weights * self.words).argmax(axis=2), weights.argmax(axis=2) == self.ends, weights

    def record(self, steps: Sequence[Step]) -> NDArray[np.int64]:
        """Record steps, which are on the host by now; keep the sentences that go on, and return them.

        These are all while few are done, and none once all are done.

        Raises:
            ValueError: if the scores of a sentence that was not done are not numbers.
        """
        for number, step in enumerate(steps):
            if number:
                self._extend(steps[number - 1])
            self._record(step)
        done = self.is_done[self.alive] | (self.limits[self.alive] < self.step)
        going = np.flatnonzero(~done)
        if len(going) and len(done) - len(going) < IDLE_SHARE * len(done):
            going = np.arange(len(done))
        if len(going) == len(self.alive):
            self._extend(steps[-1])
        elif len(going):
            self._extend(steps[-1], going)
            rows = copy_to_device(going, self.device)
            self.memory = self.memory.select(rows)
            chosen = self.place(rows)
            self.words = self.words[chosen]
            self.ends = self.ends[chosen]
            self.alive = self.alive[going]
        return going

    def _record(self, step: Step) -> None:
        """Record the hypotheses that a step finishes, and what it attends to."""
        is_bad = np.isnan(step.totals[:, 0])  # NaN comes first
        is_end = self.search.find_ends(self, step)
        if is_bad.any():
            is_bad &= ~self.is_done[self.alive] & (self.limits[self.alive] >= self.step)
            if is_bad.any():
                raise ValueError(
                    f"The model's scores for token {self.step + 1} of sentence "
                    f"{self.alive[is_bad.argmax()] + 1} of the batch are not numbers (NaN). Expected finite "
                    "scores: has training diverged, or is the weights file damaged? Check the training "
                    "curves, or lower train.learning_rate and train again."
                )
        if is_end.any():
            for sentence, rank in np.argwhere(is_end).tolist():
                i = self.alive[sentence]
                if not self.is_done[i]:
                    row, total = int(step.rows[sentence, rank]), float(step.totals[sentence, rank])
                    self.finished[i].append(Ending(self.step, row, total))
                    self.is_done[i] = len(self.finished[i]) == self.search.wanted
        self.history.sources.append(step.sources.ravel())
        self.history.at_end.append(step.at_end.ravel())
        if step.weights is not None:
            self.history.weights.append(step.weights.reshape(-1, step.weights.shape[2]))
        self.step += 1

    def _extend(self, step: Step, going: Any = slice(None)) -> None:
        """Record how the hypotheses of some live sentences go on after a step."""
        self.history.rows.append(step.next_rows[going].ravel())
        self.history.tokens.append(step.next_tokens[going].ravel())

    def best(self) -> list[list[SearchResult]]:
        """Return each sentence's n_best hypotheses, best first; ties go to the one finished first."""
        n_best = self.search.params.n_best
        ranked = [sorted(endings, key=self._score, reverse=True)[:n_best] for endings in self.finished]
        tokens, rows = self.history.trace(list(itertools.chain.from_iterable(ranked)))
        tokens = tokens.T
        sources = trace_back(rows, self.history.sources).tolist()
        at_end = trace_back(rows, self.history.at_end).tolist()
        numbers = itertools.count()
        results: list[list[SearchResult]] = []
        for source_end, endings in zip(self.all_ends.tolist(), ranked, strict=True):
            results.append([])
            for ending, number in zip(endings, numbers, strict=False):
                length = ending.step + 1
                attention = None
                if self.search.keep_attention:
                    [weights] = trace_back(rows[:length, number : number + 1], self.history.weights)
                    attention = weights[:, : source_end + 1]
                result = SearchResult(
                    tokens=tokens[number, :length].tolist(),
                    log_likelihood=ending.log_likelihood,
                    score=self._score(ending),
                    sources=sources[number][:length] if source_end else [NOWHERE] * length,
                    at_end=at_end[number][:length],
                    attention=attention,
                )
                results[-1].append(result)
        return results

    def _score(self, ending: Ending) -> float:
        """Return what a hypothesis is ranked by."""
        return final_score(ending.log_likelihood, ending.step + 1, self.search.params.alpha)


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

    def count_steps(self, device: torch.device) -> int:
        """Return the number of steps between two looks of the host."""
        return 1

    @abstractmethod
    def extend(
        self, batch: LiveBatch, scores: Float[Tensor, "R V"] | LazyScores, totals: Any, allowed: Allowed
    ) -> tuple[Continuations, Continuations]:
        """Return a step's best continuations, best first, and those that go on.

        Args:
            scores: of the next tokens, as a model returns them.
            totals: (B, H), log-likelihood of each hypothesis so far; an array if the host looks at each
                step, else a tensor, and so are the results.
        """

    @abstractmethod
    def find_ends(self, batch: LiveBatch, step: Step) -> Bool[np.ndarray, "B M"]:
        """Return which continuations of a step finish a hypothesis."""

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
        totals = batch.place(torch.zeros(len(source), self.first_beams, device=source.device))
        tokens = torch.full((len(source) * self.first_beams,), EOS, device=source.device)
        state = model.start(len(tokens))
        continued: Continuations | None = None
        while True:
            steps = list[Step]()
            for number in range(batch.step, min(batch.step + batch.steps_at_once, batch.last + 1)):
                if continued is not None:
                    state, tokens, totals = move_on(state, len(tokens), continued, source.device)
                scores, attention, state = model.step(tokens, batch.memory, state)
                allowed = batch.list_allowed(number, totals.shape[1])
                best, continued = self.extend(batch, scores, totals, allowed)
                del scores  # a GPU's memory need not hold those of two steps
                sources, at_end, weights = batch.find_attended(attention)
                kept = weights if self.keep_attention else None
                steps.append(Step(*best, continued.rows, continued.tokens, sources, at_end, kept))
            if batch.steps_at_once > 1:
                steps = read_steps(steps, source.device)
            going = batch.record(steps)
            if not len(going):
                return batch.best()
            if continued is not None and len(going) < len(continued.rows):
                continued = continued.select(batch.place(copy_to_device(going, source.device)))


def move_on(
    state: Any, rows: int, continued: Continuations, device: torch.device
) -> tuple[Any, Int64[Tensor, "R"], Any]:
    """Return the state, which has so many rows, and the tokens and totals of the hypotheses that go on."""
    parents, tokens, totals = continued.rows.ravel(), continued.tokens.ravel(), continued.totals
    if isinstance(totals, np.ndarray):
        totals = np.ascontiguousarray(totals)
        if np.array_equal(parents, np.arange(rows)):  # greedy search reorders nothing
            return state, torch.as_tensor(tokens, device=device), totals
    state = state.select(torch.as_tensor(parents, device=device))
    return state, torch.as_tensor(tokens, device=device), totals


def read_steps(steps: Sequence[Step], device: torch.device) -> list[Step]:
    """Return steps as arrays; the host waits for the device once."""
    parts = copy_to_host(list(itertools.chain.from_iterable(steps)), device)
    fields = len(Step._fields)
    return [Step(*parts[first : first + fields]) for first in range(0, len(parts), fields)]
