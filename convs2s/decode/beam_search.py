"""Beam search over token ids: a model's steps -> the best hypotheses, with attention (§4.3, T21)."""

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from convs2s.decode.search import Extension, LiveBatch, Search
from convs2s.decode.token_scores import LazyScores, find_likeliest
from convs2s.ids.vocabulary import EOS


class BeamSearch(Search):
    """Search for the most likely translations (T21).

    Each step takes the 2 * beam_size best continuations of a sentence. An EOS among the best
    beam_size of them finishes a hypothesis; the best beam_size others are continued. A sentence is done
    when beam_size hypotheses are finished; finished sentences leave the batch several at a time. Equal scores
    are ordered by row and token rank, so results are reproducible and do not depend on the batch.
    """

    def extend(
        self, batch: LiveBatch, scores: Float[Tensor, "R V"] | LazyScores, totals: Float[Tensor, "B H"]
    ) -> Extension:
        """Return each sentence's beam_size best continuations that do not end."""
        beam_size = self.params.beam_size
        allowed = batch.list_allowed(totals.shape[1])
        best = self._candidates(totals, *find_likeliest(scores, *allowed, 2 * beam_size))
        sums, rows, ids = (part.cpu().numpy() for part in best)  # the only wait for the device
        batch.check_numbers(sums)
        accepted = (ids == EOS) & (sums > -np.inf)
        if not self.params.legacy_eos:
            accepted[:, beam_size:] = False
        for i, rank in np.argwhere(accepted).tolist():
            batch.finish(i, int(rows[i, rank]), float(sums[i, rank]))
        # At most beam_size of the 2 * beam_size candidates are EOS, so enough others remain, unless the
        # vocabulary is so small that impossible hypotheses must fill the beam.
        sums[ids == EOS] = -np.inf
        continued = np.argsort(ids == EOS, axis=1, kind="stable")[:, :beam_size]
        rows, ids, sums = (np.take_along_axis(part, continued, 1) for part in (rows, ids, sums))
        return Extension(rows, ids, sums)

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
        # log p = logit - normalizer: a full log-softmax would write V numbers per row to read these few.
        offset = totals - normalizers.view(sentences, beams)
        scores = (values.view(sentences, beams, -1) + offset[:, :, None]).flatten(1)
        scores, order = scores.sort(dim=1, descending=True, stable=True)
        scores, order = scores[:, : 2 * self.params.beam_size], order[:, : 2 * self.params.beam_size]
        first = torch.arange(sentences, device=totals.device)[:, None] * beams
        rows = first + order.div(values.shape[1], rounding_mode="floor")
        ids = ids.view(sentences, -1).gather(1, order)
        return scores, rows, ids
