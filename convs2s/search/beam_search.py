"""Beam search over token ids: a model's steps -> the best hypotheses, with attention (§4.3, T21)."""

from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from convs2s.config.translate import SearchPlace, TranslateParams
from convs2s.ids.vocabulary import EOS
from convs2s.search.copies import copy_to_host
from convs2s.search.search import STEPS_ON_DEVICE, LiveBatch, Search, Step
from convs2s.search.token_scores import Allowed, Continuations, LazyScores, find_best


class BeamSearch(Search):
    """Search for the most likely translations (T21).

    Each step takes the 2 * beam_size best continuations of a sentence. An EOS among the best
    beam_size of them finishes a hypothesis; the best beam_size others are continued. A sentence is done
    when beam_size hypotheses are finished; finished sentences leave the batch several at a time. Equal scores
    are ordered by row and token rank, so results are reproducible and do not depend on the batch.

    Args:
        place: where hypotheses are kept; it changes no result.
    """

    def __init__(self, params: TranslateParams, keep_attention: bool, place: SearchPlace = "auto") -> None:
        super().__init__(params, keep_attention)
        self.place = place

    def count_steps(self, device: torch.device) -> int:
        """Return the number of steps between two looks of the host."""
        is_each = self.place == "host" or (self.place == "auto" and device.type == "cpu")
        return 1 if is_each else STEPS_ON_DEVICE

    def extend(
        self, batch: LiveBatch, scores: Float[Tensor, "R V"] | LazyScores, totals: Any, allowed: Allowed
    ) -> tuple[Continuations, Continuations]:
        """Return each sentence's 2 * beam_size best continuations, and the beam_size that do not end.

        At most beam_size of them are EOS, so enough others remain, unless the vocabulary is so small that
        impossible hypotheses must fill the beam.
        """
        beam_size = self.params.beam_size
        best = find_best(scores, totals, allowed, 2 * beam_size)
        if isinstance(totals, np.ndarray) and isinstance(best.totals, Tensor):
            best = Continuations(*copy_to_host(best, batch.device))
        is_end = best.tokens == EOS
        if isinstance(is_end, Tensor):
            order = is_end.argsort(dim=1, stable=True)[:, :beam_size]
            going = best._replace(totals=best.totals.masked_fill(is_end, -torch.inf))
            return best, Continuations(*(part.gather(1, order) for part in going))
        if not is_end.any():
            return best, Continuations(*(part[:, :beam_size] for part in best))
        order = is_end.argsort(axis=1, kind="stable")[:, :beam_size]
        going = best._replace(totals=np.where(is_end, -np.inf, best.totals))
        return best, Continuations(*(np.take_along_axis(part, order, 1) for part in going))

    def find_ends(self, batch: LiveBatch, step: Step) -> Bool[np.ndarray, "B M"]:
        """Return which continuations finish a hypothesis: EOS among the best beam_size of them."""
        is_end: Bool[np.ndarray, "B M"] = (step.tokens == EOS) & (step.totals > -np.inf)
        if not self.params.legacy_eos:
            is_end[:, self.params.beam_size :] = False
        return is_end
