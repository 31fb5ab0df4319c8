"""Sampling: translations drawn from the model's distribution, without a search."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from convs2s.decode.finished import Finished, SearchSettings, check_numbers, remaining
from convs2s.decode.search import Extension, LiveBatch, Search
from convs2s.decode.token_scores import all_logits, log_normalizer, rule_out
from convs2s.ids.vocabulary import EOS


@dataclass(frozen=True)
class Sampling:
    """How translations are drawn.

    Attributes:
        seed: the same seed gives the same translations; not negative.
        temperature: logits are divided by it: below 1, likely tokens become likelier; above 1, less likely.
        top_k: draw only from the k likeliest tokens; None for all.
        first: number of the first sentence, from 0. Samples depend only on the seed and on a sentence's
            number, so texts split over several calls get the same translations as in one call.

    Raises:
        ValueError: if a value is out of range.
    """

    seed: int
    temperature: float = 1.0
    top_k: int | None = None
    first: int = 0

    def __post_init__(self) -> None:
        for name, valid, expected in (
            ("seed", self.seed >= 0, "0 or more"),
            ("temperature", 0 < self.temperature < np.inf, "a finite number above 0"),
            ("top_k", self.top_k is None or self.top_k >= 1, "1 or more"),
        ):
            if not valid:
                raise ValueError(f"sampling: {name}: expected {expected}, found {getattr(self, name)}.")

    def sampler(self, settings: SearchSettings, numbers: Sequence[tuple[int, int]]) -> "Sampler":
        """Return a sampler for a batch; `numbers` has each sentence's number in this call, and its part."""
        ended = np.zeros((len(numbers), settings.n_best), np.bool_)
        generators = [np.random.default_rng([self.seed, self.first + i, part]) for i, part in numbers]
        return Sampler(**vars(settings), sampling=self, generators=generators, ended=ended)


@dataclass(frozen=True)
class Sampler(Search):
    """Draws `n_best` translations of each sentence of one batch; beam_size and legacy_eos have no effect.

    Log-likelihoods are the model's own, whatever the temperature and top_k.

    Attributes:
        sampling: how to draw.
        generators: of random numbers, one per sentence.
        ended: which samples have ended; changes in place.
    """

    sampling: Sampling
    generators: list[np.random.Generator]
    ended: NDArray[np.bool_]

    @property
    def first_beams(self) -> int:
        """All samples, each of which draws its own first token."""
        return self.n_best

    def extend(
        self, step: int, batch: LiveBatch, finished: Finished, scores: Any, totals: Float[Tensor, "B H"]
    ) -> Extension:
        """Return every sample with a token drawn; those that have ended are ignored."""
        logits, alive, samples = all_logits(scores), batch.alive, self.n_best
        normalizers = log_normalizer(logits)
        rule_out(logits, *batch.list_allowed(step, samples))
        tokens = self._draw(logits, alive)
        gains = logits.gather(1, tokens[:, None]).squeeze(1) - normalizers
        sums = (totals + gains.view_as(totals)).cpu().numpy()
        check_numbers(sums, alive, step)
        ids = tokens.cpu().numpy().reshape(sums.shape)
        ended = (ids == EOS) & ~self.ended[alive]
        for i, sample in np.argwhere(ended):
            finished.ends[alive[i]].append((step, int(i * samples + sample), float(sums[i, sample])))
        self.ended[alive] |= ended
        going = remaining(np.asarray(self.ended[alive].all(axis=1)))
        rows = going[:, None] * samples + np.arange(samples)
        return Extension(going, rows.ravel(), ids[going].ravel(), sums[going])

    def _draw(self, logits: Float[Tensor, "R V"], alive: NDArray[np.int64]) -> Int[Tensor, "R"]:
        """Draw a token for each row, by inverting the distribution function."""
        tokens = None
        if self.sampling.top_k is not None:
            logits, tokens = logits.topk(min(self.sampling.top_k, logits.shape[1]), dim=1)
        sums = torch.softmax(logits.double() / self.sampling.temperature, dim=1).cumsum(dim=1)
        drawn = np.concatenate([self.generators[i].random(self.n_best) for i in alive])
        points = torch.as_tensor(drawn, device=logits.device)[:, None] * sums[:, -1:]
        places = torch.searchsorted(sums, points, right=True).clamp(max=sums.shape[1] - 1)
        return places.squeeze(1) if tokens is None else tokens.gather(1, places).squeeze(1)
