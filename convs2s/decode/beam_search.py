"""Beam search over token ids: a model's steps -> the best hypotheses, with attention (§4.3, T21)."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int, Int64
from torch import Tensor

from convs2s.decode.finished import Finished, SearchResult, SearchSettings, Step, check_numbers, remaining
from convs2s.decode.live_batch import LiveBatch
from convs2s.decode.token_scores import find_likeliest
from convs2s.text.vocabulary.vocabulary import EOS, PAD


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

    def restricted(self, tokens: Int[Tensor, "N"], /) -> "SearchModel":
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
        model: SearchModel,
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
            excluded = [PAD, EOS] if step < self.min_length else [PAD]
            only = batch.only(step).repeat(totals.shape[1])
            best = self._candidates(totals, *find_likeliest(logits, only, excluded, 2 * self.beam_size))
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
        totals: Float[Tensor, "B H"],
        values: Float[Tensor, "R N"],
        ids: Int[Tensor, "R N"],
        normalizers: Float[Tensor, "R"],
    ) -> tuple[Float[Tensor, "B M"], Int[Tensor, "B M"], Int[Tensor, "B M"]]:
        """Return log-likelihood, row and last token of each sentence's 2 * beam_size best continuations.

        Args:
            totals: log-likelihood of each hypothesis so far.
            values: its largest logits, as in `ids` and `normalizers`; see `find_likeliest`.
        """
        sentences, beams = totals.shape
        count = 2 * self.beam_size
        # log p = logit - normalizer: a full log-softmax would write V numbers per row to read these few.
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
