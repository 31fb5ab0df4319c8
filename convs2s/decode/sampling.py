"""Sampling: translations drawn from the model's distribution, without a search."""

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor

from convs2s.config.section import Positive, Section
from convs2s.config.translate import TranslateParams
from convs2s.ids.vocabulary import EOS
from convs2s.search.copies import copy_to_host
from convs2s.search.search import LiveBatch, Search, Step
from convs2s.search.token_scores import (
    Allowed,
    Continuations,
    LazyScores,
    all_logits,
    log_normalizer,
    rule_out,
)


class Sampling(Section):
    """How translations are drawn.

    Attributes:
        seed: the same seed gives the same translations.
        temperature: logits are divided by it: below 1, likely tokens become likelier; above 1, less likely.
        top_k: draw only from the k likeliest tokens; None for all.
        first: number of the first sentence, from 0. Samples depend only on the seed and on a sentence's
            number, so texts split over several calls get the same translations as in one call.
    """

    seed: Annotated[int, Field(ge=0, lt=2**64)]
    temperature: Annotated[float, Field(ge=1e-3, le=1e3)] = 1.0
    top_k: Positive | None = None
    first: int = 0


class Sampler(Search):
    """Draws `n_best` translations of each sentence of one batch; beam_size and legacy_eos have no effect.

    Log-likelihoods are the model's own, whatever the temperature and top_k.

    Args:
        numbers: each sentence's number in this call, and its part.
    """

    def __init__(
        self,
        params: TranslateParams,
        keep_attention: bool,
        sampling: Sampling,
        numbers: Sequence[tuple[int, int]],
    ) -> None:
        super().__init__(params, keep_attention)
        self.wanted = self.first_beams = params.n_best  # each sample draws its own first token
        self.sampling = sampling
        self.ended = np.zeros((len(numbers), self.wanted), np.bool_)
        self.generators = [np.random.default_rng([sampling.seed, sampling.first + i, j]) for i, j in numbers]

    def extend(
        self, batch: LiveBatch, scores: Float[Tensor, "R V"] | LazyScores, totals: Any, allowed: Allowed
    ) -> tuple[Continuations, Continuations]:
        """Return every sample with a token drawn; those that have ended are ignored."""
        logits = all_logits(scores)
        normalizers = log_normalizer(logits)
        rule_out(logits, allowed)
        tokens = self._draw(logits, batch.alive)
        gains = logits.gather(1, tokens[:, None]).squeeze(1) - normalizers
        gained, drawn = copy_to_host((gains, tokens), logits.device)
        rows = np.arange(totals.size).reshape(totals.shape)
        samples = Continuations(totals + gained.reshape(totals.shape), rows, drawn.reshape(totals.shape))
        return samples, samples

    def find_ends(self, batch: LiveBatch, step: Step) -> Bool[np.ndarray, "B M"]:
        """Return which samples end with this step."""
        ended = self.ended[batch.alive]
        is_end: Bool[np.ndarray, "B M"] = (step.tokens == EOS) & ~ended
        self.ended[batch.alive] = ended | is_end
        return is_end

    def _draw(self, logits: Float[Tensor, "R V"], alive: NDArray[np.int64]) -> Int[Tensor, "R"]:
        """Draw a token for each row, by inverting the distribution function."""
        tokens = None
        if self.sampling.top_k is not None:
            logits, tokens = logits.topk(min(self.sampling.top_k, logits.shape[1]), dim=1)
        sums = torch.softmax(logits.double() / self.sampling.temperature, dim=1).cumsum(dim=1)
        drawn = np.concatenate([self.generators[i].random(self.wanted) for i in alive])
        points = torch.as_tensor(drawn, device=logits.device)[:, None] * sums[:, -1:]
        places = torch.searchsorted(sums, points, right=True).clamp(max=sums.shape[1] - 1)
        return places.squeeze(1) if tokens is None else tokens.gather(1, places).squeeze(1)
