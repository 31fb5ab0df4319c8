"""Sampling: translations drawn from the model's distribution, without a search."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int, Int64
from numpy.typing import NDArray
from torch import Tensor

from convs2s.decode.beam_search import SearchModel
from convs2s.decode.finished import Finished, SearchResult, SearchSettings, Step, check_numbers, remaining
from convs2s.decode.live_batch import LiveBatch
from convs2s.decode.token_scores import all_logits, log_normalizer, rule_out
from convs2s.text.vocabulary.vocabulary import EOS, PAD


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
        return Sampler(settings, self, [(self.first + sentence, part) for sentence, part in numbers])


class Sampler:
    """Draws `settings.n_best` translations of each sentence; replaces `BeamSearch`.

    Each batch needs its own sampler.

    Args:
        settings: alpha of the scores, shortest length, number of samples (n_best) and attention.
        sampling: how to draw.
        numbers: of the batch's sentences, such as (4, 0) for the first part of sentence 4.
    """

    def __init__(
        self, settings: SearchSettings, sampling: Sampling, numbers: Sequence[tuple[int, int]]
    ) -> None:
        self.settings, self.sampling = settings, sampling
        self.ended = np.zeros((len(numbers), settings.n_best), np.bool_)
        self.generators = [np.random.default_rng([sampling.seed, *number]) for number in numbers]

    @torch.inference_mode()
    def search(
        self,
        model: SearchModel,
        source: Int64[Tensor, "B S"],
        max_lengths: Sequence[int],
        prefixes: Sequence[Sequence[int]] = (),
    ) -> list[list[SearchResult]]:
        """Return the samples of each sentence, likeliest first.

        Arguments and errors are those of `BeamSearch.search`. Log-likelihoods are the model's own, whatever
        the temperature and top_k.
        """
        samples, device = self.settings.n_best, source.device
        batch = LiveBatch(model.encode(source), source, max_lengths, prefixes)
        finished = Finished(batch.lengths.tolist(), self.settings)
        state = model.start(len(source) * samples)
        tokens = torch.full((len(source) * samples,), EOS, device=device)
        totals = torch.zeros(len(source) * samples, device=device)
        for step in itertools.count():
            scores, attention, state = model.step(tokens, batch.memory, state)
            logits, alive = all_logits(scores), batch.alive
            normalizer = log_normalizer(logits)
            excluded = [PAD, EOS] if step < self.settings.min_length else [PAD]
            rule_out(logits, batch.only(step).repeat(samples), excluded)
            tokens = self._draw(logits, alive)
            totals += logits.gather(1, tokens[:, None]).squeeze(1) - normalizer
            going = remaining(self._finish(finished, alive, step, tokens, totals))
            rows = (going[:, None] * samples + np.arange(samples)).ravel()
            tokens, totals = tokens[rows], totals[rows]
            sources, at_end = (part.cpu().numpy() for part in batch.attended(attention))
            kept = attention.float().cpu().numpy() if self.settings.keep_attention else None
            finished.steps.append(Step(sources, at_end, kept, rows, tokens.cpu().numpy()))
            if not len(going):
                return finished.best()
            if len(going) < len(alive):
                batch.keep(going)
                state = state.select(torch.as_tensor(rows, device=device))
        raise AssertionError

    def _draw(self, logits: Float[Tensor, "R V"], alive: NDArray[np.int64]) -> Int[Tensor, "R"]:
        """Draw a token for each row, by inverting the distribution function."""
        tokens = None
        if self.sampling.top_k is not None:
            logits, tokens = logits.topk(min(self.sampling.top_k, logits.shape[1]), dim=1)
        sums = torch.softmax(logits.double() / self.sampling.temperature, dim=1).cumsum(dim=1)
        drawn = np.concatenate([self.generators[i].random(self.settings.n_best) for i in alive])
        points = torch.as_tensor(drawn, device=logits.device)[:, None] * sums[:, -1:]
        places = torch.searchsorted(sums, points, right=True).clamp(max=sums.shape[1] - 1)
        return places.squeeze(1) if tokens is None else tokens.gather(1, places).squeeze(1)

    def _finish(
        self,
        finished: Finished,
        alive: NDArray[np.int64],
        step: int,
        tokens: Int[Tensor, "R"],
        totals: Float[Tensor, "R"],
    ) -> NDArray[np.bool_]:
        """Record the samples that end at this step; return which sentences of the batch are complete."""
        shape = len(alive), self.settings.n_best
        scores = totals.cpu().numpy().reshape(shape)
        check_numbers(scores, alive, step)
        ended = (tokens == EOS).cpu().numpy().reshape(shape) & ~self.ended[alive]
        for i, sample in np.argwhere(ended):
            row = int(i * shape[1] + sample)
            finished.ends[alive[i]].append((step, row, float(scores[i, sample])))
        self.ended[alive] |= ended
        return np.asarray(self.ended[alive].all(axis=1))
