"""Beam search over token ids: a step function -> the best hypotheses, with attention (§4.3, T21)."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int, Int64
from numpy.typing import NDArray
from torch import Tensor

from convs2s.decode.finished import Finished, SearchResult, SearchSettings, Step, check_numbers, remaining
from convs2s.decode.live_batch import LiveBatch
from convs2s.decode.token_scores import LazyScores, log_normalizer, rule_out, top_tokens
from convs2s.text.vocabulary.vocabulary import EOS, PAD


@runtime_checkable
class Rows(Protocol):
    """Something with a row per sentence or hypothesis."""

    def select(self, rows: Tensor, /) -> "Rows":
        """Return these rows in this order; rows may repeat."""


@runtime_checkable
class StepModel(Protocol):
    """What beam search needs from a model, or from an ensemble of models."""

    def encode(self, source: Tensor, /) -> Rows:
        """Encode padded source sentences (B, S) into the memory that the steps attend to."""

    def start(self, rows: int, /) -> Rows:
        """Return the state before the first step."""

    def step(self, tokens: Tensor, memory: Any, state: Any, /) -> tuple[Any, Tensor, Rows]:
        """Advance R hypotheses, grouped by sentence, by a token.

        Returns:
            Logits (R, V), now or as `LazyScores`; attention (R, S); and the next state.
        """


@dataclass(frozen=True)
class BeamSearch(SearchSettings):
    """Search for the most likely translations (T21).

    Each step takes the 2 * beam_size best continuations of a sentence. An EOS among the best
    beam_size of them finishes a hypothesis; the best beam_size others are continued. A sentence is done
    when beam_size hypotheses are finished; finished sentences leave the batch several at a time. Equal scores
    are ordered by row and token rank, so results are reproducible and do not depend on the batch.
    """

    @torch.inference_mode()
    def search(
        self,
        model: StepModel,
        source: Int64[Tensor, "B S"],
        max_lengths: Sequence[int],
        prefixes: Sequence[Sequence[int]] = (),
    ) -> list[list[SearchResult]]:
        """Return the n_best hypotheses of each sentence, best first.

        Args:
            model: a model or an ensemble.
            source: each row ends with EOS, followed by padding.
            max_lengths: for each sentence, the most tokens in a hypothesis, EOS excluded.
            prefixes: for each sentence, the tokens that its hypotheses begin with, within its max_length;
                their log-likelihood counts. Empty: no sentence has a prefix.

        Raises:
            ValueError: if the model's scores are not numbers.
        """
        batch = LiveBatch(model.encode(source), source, max_lengths, prefixes)
        finished, state = Finished(batch.lengths.tolist(), self), model.start(len(source))
        # One row per sentence at first, because its hypotheses are still the same; then beam_size.
        tokens = torch.full_like(batch.lengths, EOS)
        totals = torch.zeros(len(source), 1, device=source.device)
        for step in itertools.count():
            logits, attention, state = model.step(tokens, batch.memory, state)
            alive, forced = batch.alive, batch.forced(step)
            best = self._candidates(logits, totals, step, forced, batch.given(step))
            sources, at_end = batch.attended(attention)
            scores, rows, ids = (part.cpu().numpy() for part in best)  # the only wait for the device
            check_numbers(scores, alive, step)
            finished.add(step, alive, scores, rows, ids, forced)
            going = remaining(finished.done[alive])
            # At most beam_size of the 2 * beam_size candidates are EOS, so enough others remain.
            others = np.argsort(ids[going] == EOS, axis=1, kind="stable")[:, : self.beam_size]
            scores, rows, ids = (np.take_along_axis(a[going], others, 1) for a in (scores, rows, ids))
            kept = attention.float().cpu().numpy() if self.keep_attention else None
            finished.steps.append(
                Step(sources.cpu().numpy(), at_end.cpu().numpy(), kept, rows.ravel(), ids.ravel())
            )
            if not len(going):
                return finished.best()
            on_device = partial(torch.as_tensor, device=source.device)
            if len(going) < len(alive):
                batch.keep(going)
            order = rows.ravel()
            if not np.array_equal(order, np.arange(len(attention))):  # greedy search reorders nothing
                state = state.select(on_device(order))
            tokens, totals = on_device(ids.ravel()), on_device(scores)
        raise AssertionError

    def _candidates(
        self,
        logits: Float[Tensor, "R V"] | LazyScores,
        totals: Float[Tensor, "B H"],
        step: int,
        forced: NDArray[np.bool_],
        given: tuple[list[int], list[int]],
    ) -> tuple[Float[Tensor, "B N"], Int[Tensor, "B N"], Int[Tensor, "B N"]]:
        """Return log-likelihood, row and last token of each sentence's 2 * beam_size best continuations.

        Args:
            logits: changed in place.
            totals: log-likelihood of each hypothesis so far.
            step: from 0.
            forced: sentences that must end now.
            given: sentences that must take a given token, and these tokens.
        """
        sentences, beams = totals.shape
        count = 2 * self.beam_size
        # log p = logit - normalizer: a full log-softmax would write V numbers per row to read these few.
        values, ids, normalizers = self._likeliest(logits, beams, step, forced, given)
        offset = totals - normalizers.view(sentences, beams)
        scores = (values.view(sentences, beams, -1) + offset[:, :, None]).flatten(1)
        scores, order = scores.sort(dim=1, descending=True, stable=True)
        scores, order = scores[:, :count], order[:, :count]
        first = torch.arange(sentences, device=totals.device)[:, None] * beams
        rows = first + order.div(values.shape[1], rounding_mode="floor")
        ids = ids.view(sentences, -1).gather(1, order)
        missing = count - scores.shape[1]
        if missing:  # the vocabulary is so small that impossible hypotheses must fill the beam
            scores = F.pad(scores, (0, missing), value=-torch.inf)
            rows = torch.cat([rows, first.expand(-1, missing)], dim=1)
            ids = F.pad(ids, (0, missing), value=PAD)
        return scores, rows, ids

    def _likeliest(
        self,
        scores: Float[Tensor, "R V"] | LazyScores,
        beams: int,
        step: int,
        forced: NDArray[np.bool_],
        given: tuple[list[int], list[int]],
    ) -> tuple[Float[Tensor, "R N"], Int[Tensor, "R N"], Float[Tensor, "R"]]:
        """Return each row's 2 * beam_size largest allowed logits, their tokens, and the normalizer."""
        count = 2 * self.beam_size
        if not isinstance(scores, Tensor):
            only = np.where(forced, EOS, -1)
            only[given[0]] = given[1]
            excluded = np.array([PAD, EOS] if step < self.min_length else [PAD])
            return scores.likeliest(only.repeat(beams), excluded, min(count, scores.size))
        normalizers = log_normalizer(scores)
        rule_out(scores.unflatten(0, (-1, beams)), step, self.min_length, forced, given)
        return (*top_tokens(scores, min(count, scores.shape[1])), normalizers)
