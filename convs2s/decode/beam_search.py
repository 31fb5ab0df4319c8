"""Beam search over token ids: a model's steps -> the best hypotheses, with attention (§4.3, T21)."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from convs2s.decode.finished import Finished, check_numbers, remaining
from convs2s.decode.search import Extension, LiveBatch, Search
from convs2s.decode.token_scores import find_likeliest
from convs2s.ids.vocabulary import EOS, PAD


@dataclass(frozen=True)
class BeamSearch(Search):
    """Search for the most likely translations (T21).

    Each step takes the 2 * beam_size best continuations of a sentence. An EOS among the best
    beam_size of them finishes a hypothesis; the best beam_size others are continued. A sentence is done
    when beam_size hypotheses are finished; finished sentences leave the batch several at a time. Equal scores
    are ordered by row and token rank, so results are reproducible and do not depend on the batch.
    """

    def extend(
        self, step: int, batch: LiveBatch, finished: Finished, scores: Any, totals: Float[Tensor, "B H"]
    ) -> Extension:
        """Return each sentence's beam_size best continuations that do not end."""
        allowed = batch.list_allowed(step, totals.shape[1])
        best = self._candidates(totals, *find_likeliest(scores, *allowed, 2 * self.beam_size))
        sums, rows, ids = (part.cpu().numpy() for part in best)  # the only wait for the device
        check_numbers(sums, batch.alive, step)
        finished.add(step, batch.alive, sums, rows, ids, batch.find_forced(step))
        going = remaining(finished.done[batch.alive])
        # At most beam_size of the 2 * beam_size candidates are EOS, so enough others remain.
        continued = np.argsort(ids[going] == EOS, axis=1, kind="stable")[:, : self.beam_size]
        sums, rows, ids = (np.take_along_axis(a[going], continued, 1) for a in (sums, rows, ids))
        return Extension(going, rows.ravel(), ids.ravel(), sums)

    def _candidates(
        self,
        totals: Float[Tensor, "B H"],
        values: Float[Tensor, "R N"],
        ids: Int[Tensor, "R N"],
        normalizers: Float[Tensor, "R"],
    ) -> tuple[Float[Tensor, "B M"], Int[Tensor, "B M"], Int[Tensor, "B M"]]:
        """Return log-likelihood, row and last token of each sentence's 2 * beam_size best continuations.

        Besides the log-likelihoods so far, it takes what `find_likeliest` returns.
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
