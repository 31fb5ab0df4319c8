"""Beam search over token ids: a step function -> the best hypotheses, with attention (§4.3, T21)."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Float32, Int, Int64
from numpy.typing import NDArray
from torch import Tensor

from convs2s.decode.forced_prefix import keep_only
from convs2s.decode.live_batch import LiveBatch
from convs2s.decode.token_scores import LazyScores, log_normalizer, top_tokens
from convs2s.decode.tracing import Step, trace
from convs2s.text.vocabulary.vocabulary import EOS, PAD

NOWHERE = -1
IDLE_SHARE = 1 / 16
"""Share of a batch that may be done but stay in it, because dropping a sentence copies all the others."""


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
class Hypothesis:
    """A finished translation.

    Attributes:
        tokens: target ids, EOS last.
        log_likelihood: in nats, including that of EOS.
        score: log_likelihood / |y|^alpha, where |y| includes EOS.
        sources: for each token, the source position attended to most, excluding the source's EOS (T34);
            NOWHERE if the source has no other token.
        at_end: for each token, whether the source's EOS got even more attention.
        attention: (T, S) weights, the mean of all layers; None unless requested.
    """

    tokens: list[int]
    log_likelihood: float
    score: float
    sources: list[int]
    at_end: list[bool]
    attention: Float32[np.ndarray, "T S"] | None


@dataclass(frozen=True)
class BeamSearch:
    """Search for the most likely translations (T21).

    Each step takes the 2 * beam_size best continuations of a sentence. An EOS among the best
    beam_size of them finishes a hypothesis; the best beam_size others are continued. A sentence is done
    when beam_size hypotheses are finished; finished sentences leave the batch several at a time. Equal scores
    are ordered by row and token rank, so results are reproducible and do not depend on the batch.

    Attributes:
        beam_size: hypotheses kept per sentence; 1 is greedy search.
        alpha: exponent of the length by which final scores are divided.
        min_length: fewest tokens, EOS excluded.
        n_best: hypotheses returned per sentence.
        legacy_eos: accept EOS anywhere among the 2 * beam_size candidates, as the Lua code does.
        keep_attention: return each hypothesis's attention.
    """

    beam_size: int
    alpha: float
    min_length: int
    n_best: int
    legacy_eos: bool
    keep_attention: bool

    @torch.inference_mode()
    def search(
        self,
        model: StepModel,
        source: Int64[Tensor, "B S"],
        max_lengths: Sequence[int],
        prefixes: Sequence[Sequence[int]] = (),
    ) -> list[list[Hypothesis]]:
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
        wanted = 2 * self.beam_size
        # log p = logit - normalizer: a full log-softmax would write V numbers per row to read these few.
        values, ids, normalizers = self._likeliest(logits, beams, step, forced, given)
        offset = totals - normalizers.view(sentences, beams)
        scores = (values.view(sentences, beams, -1) + offset[:, :, None]).flatten(1)
        scores, order = scores.sort(dim=1, descending=True, stable=True)
        scores, order = scores[:, :wanted], order[:, :wanted]
        first = torch.arange(sentences, device=totals.device)[:, None] * beams
        rows = first + order.div(values.shape[1], rounding_mode="floor")
        ids = ids.view(sentences, -1).gather(1, order)
        missing = wanted - scores.shape[1]
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
        wanted = 2 * self.beam_size
        if not isinstance(scores, Tensor):
            only = np.where(forced, EOS, -1)
            only[given[0]] = given[1]
            excluded = np.array([PAD, EOS] if step < self.min_length else [PAD])
            return scores.likeliest(only.repeat(beams), excluded, min(wanted, scores.size))
        normalizers = log_normalizer(scores)
        self.rule_out(scores.unflatten(0, (-1, beams)), step, forced, given)
        return (*top_tokens(scores, min(wanted, scores.shape[1])), normalizers)

    def rule_out(
        self,
        logits: Float[Tensor, "B H V"],
        step: int,
        forced: NDArray[np.bool_],
        given: tuple[list[int], list[int]],
    ) -> None:
        """Rule out, in place, padding, EOS below the minimum length, and all but forced and given tokens."""
        logits[..., PAD] = -torch.inf
        if step < self.min_length:
            early = torch.from_numpy(np.flatnonzero(~forced)).to(logits.device)
            logits[early, :, EOS] = -torch.inf
        late = np.flatnonzero(forced).tolist()
        keep_only(logits, late, [EOS] * len(late))
        keep_only(logits, *given)


class Finished:
    """The finished hypotheses of a batch, and the steps from which their tokens are traced."""

    def __init__(self, source_lengths: list[int], settings: BeamSearch) -> None:
        self.source_lengths = source_lengths
        self.settings = settings
        self.steps: list[Step] = []
        self.ends: list[list[tuple[int, int, float]]] = [[] for _ in source_lengths]  # step, row, total
        self.done = np.zeros(len(source_lengths), np.bool_)

    def add(
        self,
        step: int,
        alive: NDArray[np.int64],
        scores: NDArray[np.float32],
        rows: NDArray[np.int64],
        ids: NDArray[np.int64],
        forced: NDArray[np.bool_],
    ) -> None:
        """Record the hypotheses that EOS finishes, best first, and which sentences are done.

        Args:
            step: from 0.
            alive: the batch's sentences; those that are done cannot finish more hypotheses.
            scores: log-likelihoods of their candidates, a row per sentence, as in `rows` and `ids`.
            rows: the hypotheses that the candidates continue.
            ids: the candidates' last tokens.
            forced: sentences that end at this step, however few hypotheses are finished.
        """
        beam_size = self.settings.beam_size
        accepted = (ids == EOS) & (scores > -np.inf)
        if not self.settings.legacy_eos:
            accepted[:, beam_size:] = False
        for i, rank in np.argwhere(accepted):
            ends = self.ends[alive[i]]
            if len(ends) < beam_size:
                ends.append((step, int(rows[i, rank]), float(scores[i, rank])))
        enough = np.array([len(self.ends[sentence]) >= beam_size for sentence in alive], dtype=np.bool_)
        self.done[alive] |= enough | forced

    def best(self) -> list[list[Hypothesis]]:
        """Return each sentence's hypotheses, best first; ties go to the one finished first."""
        n_best, alpha = self.settings.n_best, self.settings.alpha
        ends = [(i, *end) for i, ends in enumerate(self.ends) for end in self._ranked(ends)[:n_best]]
        paths = trace(self.steps, *(np.array([end[place] for end in ends], np.int64) for place in (1, 2)))
        results: list[list[Hypothesis]] = [[] for _ in self.ends]
        for number, (sentence, last, _, total) in enumerate(ends):
            tokens, sources, at_end = (
                part[number, : last + 1].tolist() for part in (paths.tokens, paths.sources, paths.at_end)
            )
            length = self.source_lengths[sentence]
            attention = self._attention(paths.rows[number, : last + 1], length)
            sources = sources if length > 1 else [NOWHERE] * (last + 1)
            score = total / (last + 1) ** alpha
            results[sentence].append(Hypothesis(tokens, total, score, sources, at_end, attention))
        return results

    def _ranked(self, ends: list[tuple[int, int, float]]) -> list[tuple[int, int, float]]:
        """Return the ends of a sentence's hypotheses, best first."""
        return sorted(ends, key=lambda end: -end[2] / (end[0] + 1) ** self.settings.alpha)

    def _attention(self, rows: NDArray[np.int64], source_length: int) -> Float32[np.ndarray, "T S"] | None:
        """Return the attention of a hypothesis, if it was kept."""
        if not self.settings.keep_attention:
            return None
        kept = (step.attention for step in self.steps if step.attention is not None)
        return np.stack([weights[row, :source_length] for weights, row in zip(kept, rows, strict=False)])


def remaining(done: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return which sentences stay in the batch: all of them while few are done, none once all are done."""
    going = np.flatnonzero(~done)
    few = 0 < len(done) - len(going) < IDLE_SHARE * len(done)
    return np.arange(len(done)) if few and len(going) else going


def check_numbers(scores: NDArray[np.float32], alive: NDArray[np.int64], step: int) -> None:
    """Check that no score is NaN; NaN sorts first, so the best candidates show it.

    Raises:
        ValueError: naming the first such sentence of the batch and the step.
    """
    bad = np.flatnonzero(np.isnan(scores).any(axis=1))
    if len(bad):
        raise ValueError(
            f"The model's scores for token {step + 1} of sentence {alive[bad[0]] + 1} of the batch are not "
            "numbers (NaN). Wanted finite scores: has training diverged, or is the weights file damaged? "
            "Check the training curves, or lower train.learning_rate and train again."
        )
