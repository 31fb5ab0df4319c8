"""Beam search whose hypotheses stay on the device; the host looks at them only each eighth step (§4.3).

`BeamSearch` chooses hypotheses on the host. So the host waits for the device several times a step, and the
device for the host, the longer the more sentences a batch has. Here a step is a fixed sequence of tensor
operations, and the host starts eight steps at a time. Then it copies what they have found, lists the
hypotheses that are finished, and drops sentences that are done; in the end it follows each hypothesis back to
its start. A sentence that is done before the host looks goes on until then; what it finds is ignored.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Float32, Int64
from numpy.typing import NDArray
from torch import Tensor

from convs2s.config.translate import TranslateParams
from convs2s.decode.copies import copy_to_device, copy_to_host
from convs2s.decode.length_normalization import final_score
from convs2s.decode.recordings import Recordings
from convs2s.decode.search import NOWHERE, SearchModel, SearchResult, nan_error
from convs2s.decode.token_scores import all_logits
from convs2s.ids.vocabulary import EOS, PAD

LOOK = 8
"""Steps between two looks of the host. A look waits for the device; until then no sentence is dropped."""
FREE, LONGER = -1, -2
"""A sentence may take any token, or any but EOS, as it has not reached min_length."""


@dataclass(frozen=True)
class Board:
    """Sentences that are being searched, H hypotheses each, as they are on the device.

    Attributes:
        memory, state: the model's.
        lengths: of the sources, EOS included.
        tokens: the newest.
        totals: log-likelihoods.
    """

    memory: Any
    state: Any
    lengths: Int64[Tensor, "B"]
    tokens: Int64[Tensor, "B H"]
    totals: Float32[Tensor, "B H"]

    def select(self, sentences: Int64[Tensor, "N"]) -> "Board":
        """Return these sentences, in this order; they may repeat."""
        hypotheses = torch.arange(self.tokens.shape[1], device=sentences.device)
        rows = sentences[:, None] * len(hypotheses) + hypotheses
        return Board(
            self.memory.select(sentences),
            self.state.select(rows.flatten()),
            self.lengths[sentences],
            self.tokens[sentences],
            self.totals[sentences],
        )


class Look(NamedTuple):
    """What the host sees of T steps of a board: tensors, then arrays.

    Attributes:
        totals, tokens, parents: of the M = 2 * beam_size best continuations, best first: the log-likelihood,
            the token that it adds, and the place in its beam of the hypothesis that it extends.
        kept: for each hypothesis after the step, which of these continuations it is.
        sources, at_end: for each hypothesis before the step, the source position attended to most, except
            that of EOS (T34), and whether EOS gets even more attention.
        attention: all of it, or None.
        lengths: of the sources, EOS included.
    """

    totals: Any  # (B, T, M)
    tokens: Any  # (B, T, M)
    parents: Any  # (B, T, M)
    kept: Any  # (B, T, H)
    sources: Any  # (B, T, H)
    at_end: Any  # (B, T, H)
    attention: Any  # (B, T, H, S)
    lengths: Any  # (B,)


class Steps(NamedTuple):
    """The steps of a look as they are kept: of M continuations, only the H that the beam went on with.

    Attributes:
        rows: for each sentence of the batch, its row here; NOWHERE if it is done.
    """

    rows: NDArray[np.int64]
    tokens: NDArray[np.int64]  # (B, T, H)
    parents: NDArray[np.int64]  # (B, T, H)
    sources: NDArray[np.int64]  # (B, T, H)
    at_end: NDArray[np.bool_]  # (B, T, H)
    attention: Float32[np.ndarray, "B T H S"] | None


class DeviceSearch:
    """Search for the most likely translations on a GPU (T21); results are those of `BeamSearch`.

    Args:
        recordings: steps of a model as CUDA graphs; None, or another model's, to start each operation.
    """

    def __init__(
        self, params: TranslateParams, keep_attention: bool, recordings: Recordings | None = None
    ) -> None:
        self.params = params
        self.keep_attention = keep_attention
        self.recordings = recordings

    @torch.inference_mode()
    def search(
        self,
        model: SearchModel,
        source: Int64[Tensor, "B S"],
        max_lengths: Sequence[int],
        prefixes: Sequence[Sequence[int]] = (),
    ) -> list[list[SearchResult]]:
        """Return the n_best hypotheses of each sentence; arguments and errors as those of `Search.search`."""
        recordings = self.recordings
        if recordings is None or recordings.model is not model:
            return self._search(model, source, max_lengths, prefixes, None)
        with recordings.lock:
            source = recordings.round_width(source)
            return self._search(model, source, max_lengths, prefixes, recordings)

    def _search(
        self,
        model: SearchModel,
        source: Int64[Tensor, "B S"],
        max_lengths: Sequence[int],
        prefixes: Sequence[Sequence[int]],
        recordings: Recordings | None,
    ) -> list[list[SearchResult]]:
        """Search, with recordings of this model or none."""
        books = Books(self.params, max_lengths, prefixes)
        board = start(model, source, self.params.beam_size)
        going = np.arange(len(source))
        while len(going):
            size = len(going) if recordings is None else recordings.round_size(len(going))
            if size != len(books.sentences):
                rows = books.keep(going, size)
                board = board.select(copy_to_device(rows, source.device))
            count = min(LOOK, books.last - books.step + 1)
            rules = books.find_rules(count)
            work = partial(advance, model, count, self.keep_attention)
            arguments = board, None if rules is None else copy_to_device(rules, source.device)
            if recordings is None or count < LOOK:
                board, look = work(*arguments)
            else:
                board, look = recordings.run(work, self.keep_attention, arguments)
            going = books.record(Look(*copy_to_host(look, source.device)))
        return books.results()


def start(model: SearchModel, source: Int64[Tensor, "B S"], beam_size: int) -> Board:
    """Return a batch before its first step."""
    totals = torch.full((len(source), beam_size), -torch.inf, device=source.device)
    totals[:, 0].fill_(0.0)  # the other hypotheses would be the same
    return Board(
        model.encode(source),
        model.start(totals.numel()),
        (source != PAD).sum(dim=1),
        torch.full_like(totals, EOS, dtype=torch.int64),
        totals,
    )


def advance(
    model: SearchModel,
    count: int,
    keep_attention: bool,
    board: Board,
    rules: Int64[Tensor, "B T"] | None,
) -> tuple[Board, Look]:
    """Extend all hypotheses by `count` tokens, without any look of the host.

    Args:
        rules: for each sentence and step, the only allowed token, `FREE` or `LONGER`; None: all are free.

    Returns:
        The sentences after these steps, and what the host needs of each step.
    """
    state, tokens, totals = board.state, board.tokens, board.totals
    sentences, beams = tokens.shape
    first = torch.arange(0, tokens.numel(), beams, device=tokens.device)[:, None]  # row of each sentence
    steps = []
    for step in range(count):
        logits, attention, state = model.step(tokens.flatten(), board.memory, state)
        scores = torch.log_softmax(all_logits(logits), dim=1)  # (R, V)
        if rules is None:
            scores[:, PAD].fill_(-torch.inf)
        else:
            forbidden = find_forbidden(rules[:, step], scores.shape[1])
            scores = (
                scores.view(sentences, beams, -1).masked_fill(forbidden[:, None], -torch.inf).flatten(0, 1)
            )
        values, ids = scores.topk(min(2 * beams, scores.shape[1]), dim=1)
        sums = (values.view(sentences, beams, -1) + totals[:, :, None]).flatten(1)
        sums, order = sums.sort(dim=1, descending=True, stable=True)
        sums, order = sums[:, : 2 * beams], order[:, : 2 * beams]  # (B, M)
        parents = order.div(values.shape[1], rounding_mode="floor")
        added = ids.view(sentences, -1).gather(1, order)
        # Those that do not end come first. At most beam_size of 2 * beam_size end, so enough others remain,
        # unless the vocabulary is so small that impossible ones must fill the beam.
        totals, kept = sums.masked_fill(added == EOS, -torch.inf).sort(dim=1, descending=True, stable=True)
        totals, kept = totals[:, :beams], kept[:, :beams]
        tokens = added.gather(1, kept)
        state = state.select((first + parents.gather(1, kept)).flatten())
        steps.append((sums, added, parents, kept, attention.view(sentences, beams, -1)))
    sums, added, parents, kept, weights = (torch.stack(parts, dim=1) for parts in zip(*steps, strict=True))
    sources, at_end = find_attended(weights, board.lengths)
    whole = weights if keep_attention else None
    look = Look(sums, added, parents, kept, sources, at_end, whole, board.lengths)
    return Board(board.memory, state, board.lengths, tokens, totals), look


def find_forbidden(rules: Int64[Tensor, "B"], entries: int) -> Bool[Tensor, "B V"]:
    """Return which tokens each sentence may not take."""
    tokens = torch.arange(entries, device=rules.device)
    rules = rules[:, None]
    excluded = (tokens == PAD) | ((tokens == EOS) & (rules == LONGER))
    return torch.where(rules >= 0, tokens != rules, excluded)


def find_attended(
    weights: Float[Tensor, "B T H S"], lengths: Int64[Tensor, "B"]
) -> tuple[Int64[Tensor, "B T H"], Bool[Tensor, "B T H"]]:
    """Return the source position attended to most, except that of EOS, and whether EOS gets even more."""
    ends = (lengths - 1)[:, None, None, None]
    words = torch.arange(weights.shape[3], device=weights.device) < ends
    most, sources = (weights * words).max(dim=3)
    at_end = weights.gather(3, ends.expand(*weights.shape[:3], 1)).squeeze(3) > most
    return sources, at_end


class Books:
    """What the host knows of a batch: who goes on, by which rules, and all steps so far.

    A sentence has two numbers: its index in the batch, and its row on the board.

    Attributes:
        step: number of the next step, from 0.
        last: number of the last step that any sentence may take.
        sentences: for each row of the board, its sentence; NOWHERE for a row that only fills the board.
    """

    def __init__(
        self, params: TranslateParams, max_lengths: Sequence[int], prefixes: Sequence[Sequence[int]]
    ) -> None:
        self.params = params
        self.prefixes = prefixes
        self.longest_prefix = max(map(len, prefixes), default=0)
        self.step = 0
        self.last = max(max_lengths)
        self.sentences: NDArray[np.int64] = np.arange(len(max_lengths))
        self.limits = np.asarray(max_lengths, dtype=np.int64)
        self.lengths = np.zeros_like(self.limits)
        self.finished = np.zeros_like(self.limits)  # number of hypotheses of each sentence
        self.done_at = self.limits.copy()  # the last step of each sentence, as far as known
        self.looks: list[Steps] = []
        self.ends: list[list[NDArray[Any]]] = []  # sentences, steps, parents and totals of each look

    def keep(self, going: NDArray[np.int64], size: int) -> NDArray[np.int64]:
        """Keep these rows; return the rows of a board of this size, which repeats the first to fill it."""
        filler = np.full(size - len(going), going[0])
        self.sentences = np.concatenate([self.sentences[going], np.full_like(filler, NOWHERE)])
        return np.concatenate([going, filler])

    def find_rules(self, count: int) -> NDArray[np.int64] | None:
        """Return the rules of the next `count` steps, as `advance` takes them."""
        steps = self.step + np.arange(count)
        free = np.where(steps < self.params.min_length, LONGER, FREE)
        rules = np.where(self.limits[self.sentences, None] <= steps, EOS, free)
        if self.step < self.longest_prefix:
            for row, sentence in enumerate(self.sentences):
                prefix = self.prefixes[sentence][self.step : self.step + count]
                rules[row, : len(prefix)] = prefix
        return None if (rules == FREE).all() else rules

    def record(self, look: Look) -> NDArray[np.int64]:
        """Record what some steps have found; return the rows of the sentences that go on.

        Raises:
            ValueError: if the scores of a sentence that was not done are not numbers.
        """
        beam_size = self.params.beam_size
        is_real = self.sentences != NOWHERE
        rows_of_sentences = np.full_like(self.limits, NOWHERE)
        rows_of_sentences[self.sentences[is_real]] = np.flatnonzero(is_real)
        self.lengths[self.sentences[is_real]] = look.lengths[is_real]
        accepted = (look.tokens == EOS) & (look.totals > -np.inf) & is_real[:, None, None]
        if not self.params.legacy_eos:
            accepted[:, :, beam_size:] = False
        rows, steps, _ = np.nonzero(accepted)  # in the order of rows, then steps
        sentences = self.sentences[rows]
        number = self.finished[sentences] + np.arange(len(rows)) - np.searchsorted(rows, rows)
        self.done_at[sentences[number == beam_size - 1]] = self.step + steps[number == beam_size - 1]
        accepted_ends = sentences, self.step + steps, look.parents[accepted], look.totals[accepted]
        self.ends.append([part[number < beam_size] for part in accepted_ends])
        self.finished += np.bincount(self.ends[-1][0], minlength=len(self.limits))
        self._check_numbers(look, is_real)
        tokens, parents = (np.take_along_axis(part, look.kept, 2) for part in (look.tokens, look.parents))
        steps_found = Steps(rows_of_sentences, tokens, parents, look.sources, look.at_end, look.attention)
        self.looks.append(steps_found)
        self.step += look.tokens.shape[1]
        return np.flatnonzero(is_real & (self.done_at[self.sentences] >= self.step))

    def _check_numbers(self, look: Look, is_real: NDArray[np.bool_]) -> None:
        """Raise ValueError for the first NaN of a sentence that is not done; NaN sorts first."""
        steps = self.step + np.arange(look.totals.shape[1])
        is_going = is_real[:, None] & (steps <= self.done_at[self.sentences, None])
        bad = np.argwhere((np.isnan(look.totals[:, :, 0]) & is_going).T)
        if len(bad):
            step, row = bad[0]
            raise nan_error(self.step + int(step), int(self.sentences[row]))

    def results(self) -> list[list[SearchResult]]:
        """Return each sentence's n_best hypotheses, best first; ties go to the one finished first."""
        sentences, last, parents, totals = map(np.concatenate, zip(*self.ends, strict=True))
        lengths = last + 1
        ends = zip(totals.tolist(), lengths.tolist(), strict=True)
        scores = np.array([final_score(total, n, self.params.alpha) for total, n in ends])
        order = np.lexsort((np.arange(len(scores)), -scores, sentences))
        ranks = np.arange(len(order)) - np.searchsorted(sentences[order], sentences[order])
        best = order[ranks < self.params.n_best]
        tokens, sources, at_end, places = self._follow(sentences[best], last[best], parents[best])
        results: list[list[SearchResult]] = [[] for _ in self.limits]
        for k, (end, sentence, length) in enumerate(
            zip(best.tolist(), sentences[best].tolist(), lengths[best].tolist(), strict=True)
        ):
            has_words = self.lengths[sentence] > 1
            result = SearchResult(
                tokens=tokens[k, :length].tolist(),
                log_likelihood=float(totals[end]),
                score=float(scores[end]),
                sources=sources[k, :length].tolist() if has_words else [NOWHERE] * length,
                at_end=at_end[k, :length].tolist(),
                attention=self._attention(sentence, places[k, :length]),
            )
            results[sentence].append(result)
        return results

    def _follow(
        self, sentences: NDArray[np.int64], last: NDArray[np.int64], parents: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_], NDArray[np.int64]]:
        """Follow N finished hypotheses back to their first tokens, all at once.

        Args:
            last: the step of each one's EOS.
            parents: the place in the beam of the hypothesis that this EOS extends.

        Returns:
            For each hypothesis and step: the token, the source position attended to most, whether EOS got
            more, and the place of the hypothesis that the token extends. What follows `last` has no meaning.
        """
        shape = len(sentences), max(last, default=NOWHERE) + 1
        tokens, sources, places = (np.full(shape, EOS) for _ in range(3))
        at_end = np.zeros(shape, np.bool_)
        place = parents
        for step in reversed(range(shape[1])):
            look, number = self.looks[step // LOOK], step % LOOK
            rows = look.rows[sentences]  # of a sentence that is gone any row will do
            is_before = step < last
            tokens[:, step] = np.where(is_before, look.tokens[rows, number, place], EOS)
            place = np.where(is_before, look.parents[rows, number, place], place)
            places[:, step] = place
            sources[:, step] = look.sources[rows, number, place]
            at_end[:, step] = look.at_end[rows, number, place]
        return tokens, sources, at_end, places

    def _attention(self, sentence: int, places: NDArray[np.int64]) -> Float32[np.ndarray, "T S"] | None:
        """Return the attention of the hypotheses at these places, one for each step."""
        parts = []
        for look, start in zip(self.looks, range(0, len(places), LOOK), strict=False):
            if look.attention is None:
                return None
            chosen = places[start : start + LOOK]
            parts.append(look.attention[look.rows[sentence], np.arange(len(chosen)), chosen])
        return np.concatenate(parts)[:, : self.lengths[sentence]]
