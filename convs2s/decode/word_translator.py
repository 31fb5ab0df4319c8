"""Words in, words out: encode, search in batches, decode; sentences of any length (§4.3, T18)."""

import copy
import itertools
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeVar

import numpy as np
import torch

from convs2s.config.translate import SearchPlace, TranslateParams
from convs2s.decode.batches import (
    BATCH_TOKENS,
    GPU_BATCH_TOKENS,
    FittingSentences,
    batches,
    cut,
    free_gpu_memory,
    gpu_batch_sentences,
    pad_ids,
)
from convs2s.decode.parallel import run_beside, run_in_processes
from convs2s.decode.sampling import Sampler, Sampling
from convs2s.decode.sentence_parts import SentencePart, join_parts
from convs2s.decode.translations import Hypothesis
from convs2s.ids.selection import VocabularySelection
from convs2s.ids.vocabulary import EOS
from convs2s.model.precision import PrecisionChoice, choose_precision
from convs2s.search.beam_search import BeamSearch
from convs2s.search.copies import copy_to_device
from convs2s.search.ensemble import Ensemble
from convs2s.search.search import Search, SearchModel, SearchResult
from convs2s.text.vocabulary.codec import Codec

Result = TypeVar("Result")
Found = tuple[int, list[list[SearchResult]]]
"""The number of a sentence, and for each of its parts the n_best hypotheses."""
FINISHED_AT_ONCE = 128
"""Sentences whose words one of several processes puts together at a time."""
FORCED = {"beam_size": 1, "n_best": 1, "min_length": 0, "max_length_ratio": 0.0, "max_length_extra": 0.0}
"""A search that can only end, after a prefix."""


class GivenScore(NamedTuple):
    """The likelihood of a given translation.

    Attributes:
        log_likelihood: in nats, including that of EOS; NaN if a side is longer than the position table.
        tokens: number of tokens in the translation, EOS included.
        unknown_characters: number of characters of both sides that the model never saw and that were left
            out.
    """

    log_likelihood: float
    tokens: int
    unknown_characters: int = 0


class WordTranslator:
    """A model or an ensemble with the codecs of both sides.

    Args:
        model: on `device`.
        selection: of the target tokens of a batch (§5.4); None for all.
        processes: number of processes that share what is loaded. On a CPU they search batches in parallel,
            each on one thread; beside a GPU they put together the words of its translations.
        place: where beam search keeps its hypotheses.
    """

    def __init__(
        self,
        model: SearchModel,
        source: Codec,
        target: Codec,
        params: TranslateParams,
        device: torch.device,
        selection: VocabularySelection | None = None,
        processes: int = 1,
        place: SearchPlace = "auto",
    ) -> None:
        self.model = model
        self.fitting = FittingSentences()
        self.members = len(model.members) if isinstance(model, Ensemble) else 1
        self.source = source
        self.target = target
        self.params = params
        self.device = device
        self.selection = selection
        self.processes = processes
        self.place = place

    @property
    def precision(self) -> PrecisionChoice:
        """The precision of products, and why."""
        return choose_precision(self.params.precision, self.device)

    @property
    def batch_sentences(self) -> int:
        """Number of sentences translated at once."""
        size = self.params.batch_sentences
        depends_on_batch = self.params.max_length_of == "batch" or self.selection is not None
        if self.device.type != "cuda" or depends_on_batch:  # such a translation is to be that of a CPU
            return size
        beam_size, entries = self.params.beam_size, len(self.target.vocabulary)
        return gpu_batch_sentences(size, beam_size, entries, free_gpu_memory(self.device), self.members)

    @property
    def processes_beside(self) -> int:
        """Number of processes for words, beside the search of a GPU; 1 is this process itself."""
        return self.processes if self.device.type == "cuda" else 1

    def translate(
        self,
        sentences: Sequence[Sequence[str]],
        keep_attention: bool,
        on_done: Callable[[int], object] | None = None,
    ) -> list[list[Hypothesis]]:
        """Return the n_best hypotheses of each sentence, best first; see `translate_into`."""
        return self.translate_into(
            lambda _, hypotheses: hypotheses, sentences, keep_attention, on_done=on_done
        )

    def translate_into(
        self,
        finish: Callable[[int, list[Hypothesis]], Result],
        sentences: Sequence[Sequence[str]],
        keep_attention: bool,
        *,
        prefixes: Sequence[Sequence[str]] | None = None,
        sampling: Sampling | None = None,
        on_done: Callable[[int], object] | None = None,
    ) -> list[Result]:
        """Return what `finish` makes of each sentence's number and its n_best hypotheses, best first.

        A sentence without words has one empty hypothesis. A sentence longer than the position table is
        translated in parts; the first one causes a warning. With several processes and a GPU, the others put
        the words of a batch together while the next batch is searched.

        Args:
            keep_attention: return the best hypothesis's attention.
            prefixes: for each sentence, the words that its translations begin with; may be empty.
            sampling: draw n_best translations instead of searching for the best.
            on_done: called with the number of sentences that each batch completes.

        Raises:
            ValueError: if the model's scores are not numbers.
            ChildProcessError: if one of the worker processes dies.
        """
        texts = [list(words) for words in sentences]
        texts_prefixes: Sequence[Sequence[str]] = [[]] * len(texts) if prefixes is None else prefixes
        rows_of_texts = [
            self.rows(words, self._encode_prefix(prefix), number)
            for number, (words, prefix) in enumerate(zip(texts, texts_prefixes, strict=True))
        ]
        rows = list(itertools.chain.from_iterable(rows_of_texts))

        def complete() -> Iterator[list[Found]]:
            """Yield the sentences that each batch completes, some at a time; first those without words."""
            yield [(number, []) for number, own_rows in enumerate(rows_of_texts) if not own_rows]
            parts = [[list[SearchResult]()] * len(own_rows) for own_rows in rows_of_texts]
            missing = [len(own_rows) for own_rows in rows_of_texts]
            for batch, n_best_lists in self._search_batches(rows, keep_attention, sampling, on_done):
                completed = []
                for row, ranked in zip((rows[i] for i in batch), n_best_lists, strict=True):
                    parts[row.sentence][row.part] = ranked
                    missing[row.sentence] -= 1
                    if not missing[row.sentence]:
                        completed.append((row.sentence, parts[row.sentence]))
                for start in range(0, len(completed), FINISHED_AT_ONCE):
                    yield completed[start : start + FINISHED_AT_ONCE]

        def finish_all(completed: list[Found]) -> list[tuple[int, Result]]:
            finished = []
            for number, n_best_lists in completed:
                words, own_rows = texts[number], rows_of_texts[number]
                hypotheses = join_parts(
                    words, own_rows, n_best_lists, self.source, self.target, keep_attention
                )
                finished.append((number, finish(number, hypotheses)))
            return finished

        if on_done is not None:
            on_done(rows_of_texts.count([]))  # nothing to translate
        is_long = len(rows) > self.batch_sentences
        finished = run_beside(finish_all, complete(), self.processes_beside if is_long else 1)
        by_number = dict(itertools.chain.from_iterable(finished))
        return [by_number[number] for number in range(len(texts))]

    def rows(self, words: list[str], prefix: Sequence[int] = (), sentence: int = 0) -> list[SentencePart]:
        """Return what to search for a sentence: several rows for a long one, none for one without words."""
        ids = self.source.encode(words)[:-1]
        limit = self.model.max_source_tokens
        parts = [range(len(ids))] if ids else []
        if limit is not None and len(ids) > limit - 1:
            warnings.warn(  # shown once
                f"A sentence has more tokens than the model's position table takes, {limit - 1}; such long "
                "sentences are translated in parts. Give one sentence per line for better translations.",
                stacklevel=2,
            )
            parts = cut(words, self.source.word_of_piece(words), limit - 1)
        return [
            SentencePart([*ids[part.start : part.stop], EOS], () if number else prefix, sentence, number)
            for number, part in enumerate(parts)
        ]

    def search(
        self,
        rows: Sequence[SentencePart],
        keep_attention: bool,
        sampling: Sampling | None = None,
        on_done: Callable[[int], object] | None = None,
    ) -> list[list[SearchResult]]:
        """Return the n_best hypotheses of each row, in order; arguments as in `translate_into`."""
        results: list[list[SearchResult]] = [[] for _ in rows]
        for batch, n_best_lists in self._search_batches(rows, keep_attention, sampling, on_done):
            for i, ranked in zip(batch, n_best_lists, strict=True):
                results[i] = ranked
        return results

    def _search_batches(
        self,
        rows: Sequence[SentencePart],
        keep_attention: bool,
        sampling: Sampling | None,
        on_done: Callable[[int], object] | None,
    ) -> Iterator[tuple[list[int], list[list[SearchResult]]]]:
        """Yield the numbers of each batch's rows, with their hypotheses; arguments as in `translate_into`."""
        tokens = GPU_BATCH_TOKENS if self.device.type == "cuda" else BATCH_TOKENS
        row_batches = list(batches([len(row.ids) for row in rows], self.batch_sentences, tokens))
        processes = self.processes if self.device.type == "cpu" else 1

        def search_batch(batch: Sequence[int]) -> list[list[SearchResult]]:
            return self._search_batch([rows[i] for i in batch], keep_attention, sampling)

        if processes > 1 and len(row_batches) > 1:
            search_batch(row_batches[-1][-1:])  # sets up what processes then share
        searched = run_in_processes(search_batch, row_batches, processes)
        for batch, n_best_lists in zip(row_batches, searched, strict=True):
            yield batch, n_best_lists
            if on_done is not None:
                on_done(sum(rows[i].part == 0 for i in batch))

    def score(
        self,
        sources: Sequence[Sequence[str]],
        targets: Sequence[Sequence[str]],
        on_done: Callable[[int], object] | None = None,
    ) -> list[GivenScore]:
        """Return the likelihood of each given translation, over the whole target vocabulary.

        That is a search in which each translation is a prefix, after which only EOS fits. Words that are not
        in the vocabulary count as `<unk>`.
        """
        pairs = [
            (self.source.encode(list(s)), self.target.encode(list(t)))
            for s, t in zip(sources, targets, strict=True)
        ]
        most_source = self.model.max_source_tokens or math.inf
        most_target = self.model.max_target_tokens or math.inf
        rows = [
            SentencePart(source, target[:-1], number, 0)
            for number, (source, target) in enumerate(pairs)
            if len(source) <= most_source and len(target) <= most_target
        ]
        forced = copy.copy(self)
        forced.params = self.params.model_copy(update=FORCED)
        forced.selection = None
        scores = [GivenScore(math.nan, len(target)) for _, target in pairs]
        for row, [best] in zip(rows, forced.search(rows, False, on_done=on_done), strict=True):
            scores[row.sentence] = GivenScore(best.log_likelihood, len(best.tokens))
        return scores

    def _search_batch(
        self, rows: Sequence[SentencePart], keep_attention: bool, sampling: Sampling | None
    ) -> list[list[SearchResult]]:
        """Return the n_best hypotheses of each row of one batch."""
        ids = pad_ids([row.ids for row in rows])
        source = copy_to_device(ids, self.device)
        lengths = [len(row.ids) - 1 for row in rows]
        if self.params.max_length_of == "batch":
            lengths = [max(lengths)] * len(rows)
        limits = [max(self._longest(n), len(row.prefix)) for n, row in zip(lengths, rows, strict=True)]
        prefixes = [row.prefix for row in rows]
        model, selected = self.model, None
        if self.selection is not None:
            needed = np.array(list(itertools.chain.from_iterable(prefixes)), dtype=np.int64)
            selected = self.selection.tokens(ids.numpy(), needed)
            model = self.model.restrict(copy_to_device(selected, self.device))
            prefixes = [np.searchsorted(selected, prefix).tolist() for prefix in prefixes]

        def search_part(part: slice) -> list[list[SearchResult]]:
            search = self._make_search(rows[part], keep_attention, sampling)
            return search.search(model, source[part], limits[part], prefixes[part])

        n_best_lists = self.fitting.search(search_part, len(rows), self.device)
        if selected is None:
            return n_best_lists
        return [
            [replace(hypothesis, tokens=selected[hypothesis.tokens].tolist()) for hypothesis in ranked]
            for ranked in n_best_lists
        ]

    def _make_search(
        self, rows: Sequence[SentencePart], keep_attention: bool, sampling: Sampling | None
    ) -> Search:
        """Return the search for one batch."""
        if sampling is not None:
            numbers = [(row.sentence, row.part) for row in rows]
            return Sampler(self.params, keep_attention, sampling, numbers)
        return BeamSearch(self.params, keep_attention, self.place)

    def _encode_prefix(self, words: Sequence[str]) -> list[int]:
        """Return the ids of the words that a translation begins with."""
        ids = self.target.encode(list(words))[:-1]
        positions = self.model.max_target_tokens
        if positions is not None and len(ids) > positions - 1:
            raise ValueError(
                f"The prefix that begins with {' '.join(words[:5])!r} has {len(ids)} tokens but the model's "
                f"position table takes {positions - 1}. Shorten it."
            )
        return ids

    def _longest(self, source_tokens: int) -> int:
        """Return the most tokens of a hypothesis, EOS excluded."""
        # 1e-9: 0.58 * 50 must not come out below 29.
        limit = self.params.max_length_ratio * source_tokens + self.params.max_length_extra + 1e-9
        positions = self.model.max_target_tokens
        return math.floor(limit) if positions is None else min(math.floor(limit), positions - 1)
