"""What beam search and sampling share: the steps of a model, over the unfinished sentences of a batch."""

import itertools
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, Int64
from numpy.typing import NDArray
from torch import Tensor

from convs2s.decode.finished import Finished, SearchResult, SearchSettings, Step
from convs2s.ids.vocabulary import EOS, PAD


@runtime_checkable
class Rows(Protocol):
    """Something with a row per sentence or hypothesis."""

    def select(self, rows: Tensor, /) -> "Rows":
        """Return these rows in this order; rows may repeat."""


@runtime_checkable
class SearchModel(Protocol):
    """What a search needs from a model: the plain one, the engine's, or an ensemble of these."""

    @property
    def max_source_tokens(self) -> int | None:
        """Longest source sentence, EOS included; None if unlimited."""

    @property
    def max_target_tokens(self) -> int | None:
        """Longest target sentence, EOS included; None if unlimited."""

    def restrict(self, tokens: Int[Tensor, "N"], /) -> "SearchModel":
        """Return the same model over only these target tokens (§5.4); all other weights are shared."""

    def encode(self, source: Tensor, /) -> Rows:
        """Encode padded source sentences (B, S) into the memory that the steps attend to."""

    def start(self, rows: int, /) -> Rows:
        """Return the state before the first step."""

    def step(self, tokens: Tensor, memory: Any, state: Any, /) -> tuple[Any, Tensor, Rows]:
        """Advance R hypotheses, grouped by sentence, by a token.

        Returns:
            Logits (R, V), now or as `LazyScores`; attention (R, S); and the next state.
        """


class LiveBatch:
    """The source data that the steps need, for the unfinished sentences; see `Search.search`.

    Attributes:
        memory: the encoder output.
        alive: the indices of the unfinished sentences in the whole batch.
    """

    def __init__(
        self,
        memory: Any,
        source: Int64[Tensor, "B S"],
        max_lengths: Sequence[int],
        prefixes: Sequence[Sequence[int]],
        min_length: int,
    ) -> None:
        self.memory, self.prefixes, self.min_length = memory, prefixes, min_length
        self.limits = np.asarray(max_lengths, dtype=np.int64)
        self.alive: NDArray[np.int64] = np.arange(len(source))
        self.lengths = (source != PAD).sum(dim=1)
        positions = torch.arange(source.shape[1], device=source.device)
        self.words = (positions < self.lengths[:, None] - 1).float()  # (B, S): 0 at EOS and padding

    def find_forced(self, step: int) -> NDArray[np.bool_]:
        """Return which sentences must end at this step."""
        return self.limits[self.alive] <= step

    def list_allowed(self, step: int, beams: int) -> tuple[NDArray[np.int64], list[int]]:
        """Return the next tokens that are allowed, as `find_likeliest` takes them.

        That is each row's only token, the next one of its prefix, or EOS, else -1; and those excluded.
        """
        only = np.where(self.find_forced(step), EOS, -1)
        for row, i in enumerate(self.alive if self.prefixes else ()):
            if step < len(self.prefixes[i]):
                only[row] = self.prefixes[i][step]
        return only.repeat(beams), [PAD, EOS] if step < self.min_length else [PAD]

    def find_attended(self, attention: Float[Tensor, "R S"]) -> tuple[Int[Tensor, "R"], Bool[Tensor, "R"]]:
        """Return the most attended position except EOS (T34), and whether EOS gets even more attention."""
        grid = attention.view(len(self.words), -1, attention.shape[1])  # (B, H, S), H the same for all
        most, sources = (grid * self.words[:, None]).max(dim=2)
        ends = (self.lengths - 1)[:, None, None].expand(-1, grid.shape[1], 1)
        return sources.flatten(), (grid.gather(2, ends).squeeze(2) > most).flatten()

    def keep(self, going: NDArray[np.int64]) -> None:
        """Drop all sentences except these, given by their current row."""
        index = torch.as_tensor(going, device=self.lengths.device)
        self.memory, self.words = self.memory.select(index), self.words[index]
        self.lengths, self.alive = self.lengths[index], self.alive[going]


class Extension(NamedTuple):
    """The hypotheses that a step leaves: the same number for each remaining sentence."""

    going: NDArray[np.int64]  # the sentences that remain, by their current row
    parents: NDArray[np.int64]  # for each hypothesis, the row that it extends
    tokens: NDArray[np.int64]  # and the token that it adds
    totals: NDArray[np.float32]  # their log-likelihoods, a row per remaining sentence


class Search(SearchSettings, ABC):
    """A way to translate a batch: it extends all hypotheses token by token."""

    @property
    def first_beams(self) -> int:
        """Hypotheses per sentence at the first step: one, because all would be the same."""
        return 1

    @abstractmethod
    def extend(
        self, step: int, batch: LiveBatch, finished: Finished, scores: Any, totals: Float[Tensor, "B H"]
    ) -> Extension:
        """Return the hypotheses after a step, and record those that it finishes.

        Args:
            step: from 0.
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
        """Return the n_best hypotheses of each sentence, best first.

        Args:
            source: each row ends with EOS, followed by padding.
            max_lengths: for each sentence, the most tokens in a hypothesis, EOS excluded.
            prefixes: for each sentence, the tokens that its hypotheses begin with, within its max_length;
                their log-likelihood counts. Empty: no sentence has a prefix.

        Raises:
            ValueError: if the model's scores are not numbers.
        """
        batch = LiveBatch(model.encode(source), source, max_lengths, prefixes, self.min_length)
        totals = torch.zeros(len(source), self.first_beams, device=source.device)
        finished, state = Finished(batch.lengths.tolist(), self), model.start(totals.numel())
        on_device = partial(torch.as_tensor, device=source.device)
        tokens = torch.full((totals.numel(),), EOS, device=source.device)
        for step in itertools.count():
            scores, attention, state = model.step(tokens, batch.memory, state)
            sources, at_end = batch.find_attended(attention)
            going, parents, ids, sums = self.extend(step, batch, finished, scores, totals)
            kept = attention.float().cpu().numpy() if self.keep_attention else None
            finished.steps.append(Step(sources.cpu().numpy(), at_end.cpu().numpy(), kept, parents, ids))
            if not len(going):
                return finished.best()
            if len(going) < len(batch.alive):
                batch.keep(going)
            if not np.array_equal(parents, np.arange(len(attention))):  # greedy search reorders nothing
                state = state.select(on_device(parents))
            tokens, totals = on_device(ids), on_device(sums)
        raise AssertionError
