"""Beam search over token ids: a model's steps -> the best hypotheses, with attention (§4.3, T21)."""

import numpy as np
from jaxtyping import Float, Float32
from torch import Tensor

from convs2s.decode.search import Extension, LiveBatch, Search
from convs2s.decode.token_scores import LazyScores, find_best
from convs2s.ids.vocabulary import EOS


class BeamSearch(Search):
    """Search for the most likely translations (T21).

    Each step takes the 2 * beam_size best continuations of a sentence. An EOS among the best
    beam_size of them finishes a hypothesis; the best beam_size others are continued. A sentence is done
    when beam_size hypotheses are finished; finished sentences leave the batch several at a time. Equal scores
    are ordered by row and token rank, so results are reproducible and do not depend on the batch.
    """

    def extend(
        self,
        batch: LiveBatch,
        scores: Float[Tensor, "R V"] | LazyScores,
        totals: Float32[np.ndarray, "B H"],
    ) -> Extension:
        """Return each sentence's beam_size best continuations that do not end."""
        beam_size = self.params.beam_size
        allowed = batch.list_allowed(totals.shape[1])
        sums, rows, ids = find_best(scores, totals, *allowed, 2 * beam_size)
        batch.check_numbers(sums)
        ends = ids == EOS
        if not ends.any():
            return Extension(rows[:, :beam_size], ids[:, :beam_size], sums[:, :beam_size])
        accepted = ends & (sums > -np.inf)
        if not self.params.legacy_eos:
            accepted[:, beam_size:] = False
        for i, rank in np.argwhere(accepted).tolist():
            batch.finish(i, int(rows[i, rank]), float(sums[i, rank]))
        # At most beam_size of the 2 * beam_size candidates are EOS, so enough others remain, unless the
        # vocabulary is so small that impossible hypotheses must fill the beam.
        sums[ends] = -np.inf
        continued = ends.argsort(axis=1, kind="stable")[:, :beam_size]
        sentences = np.arange(len(ids))[:, None]
        return Extension(rows[sentences, continued], ids[sentences, continued], sums[sentences, continued])
