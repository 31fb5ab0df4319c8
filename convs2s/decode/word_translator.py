"""Words in, words out: encode, search in batches, decode; sentences of any length (§4.3, T18)."""

import itertools
import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import torch

from convs2s.config.translate import TranslateParams
from convs2s.decode.batches import batches, cut, pad
from convs2s.decode.beam_search import BeamSearch
from convs2s.decode.finished import SearchResult
from convs2s.decode.parallel import check_processes, run_in_processes
from convs2s.decode.sampling import Sampler, Sampling
from convs2s.decode.search import SearchModel
from convs2s.decode.translations import Attention, Hypothesis, block_diagonal
from convs2s.decode.unknown_replacement import Unknown
from convs2s.ids.selection import VocabularySelection
from convs2s.ids.vocabulary import EOS, UNK
from convs2s.model.precision import Choice, choose_precision
from convs2s.text.vocabulary.codec import Codec


class WordTranslator:
    """A model or an ensemble with the codecs of both sides.

    Args:
        model: on `device`.
        source: codec of the source side.
        target: codec of the target side.
        params: of the search.
        device: where to search.
        selection: of the target tokens of a batch (§5.4); None for all.
        processes: number of processes that search batches in parallel on a CPU, each on one thread, sharing
            the weights.

    Raises:
        ValueError: if this many processes cannot share the device.
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
    ) -> None:
        check_processes(processes, device)
        self.processes = processes
        self.model, self.source, self.target = model, source, target
        self.params, self.device, self.selection = params, device, selection
        self.warned = False

    @property
    def precision(self) -> Choice:
        """The precision of products, and why."""
        return choose_precision(self.params.precision, self.device)

    def translate(
        self,
        sentences: Sequence[Sequence[str]],
        keep_attention: bool,
        *,
        prefixes: Sequence[Sequence[str]] | None = None,
        sampling: Sampling | None = None,
        on_done: Callable[[int], object] | None = None,
    ) -> list[list[Hypothesis]]:
        """Return the n_best hypotheses of each sentence, best first.

        A sentence without words has one empty hypothesis. A sentence longer than the position table is
        translated in parts; the first one causes a warning.

        Args:
            sentences: words of each.
            keep_attention: return the best hypothesis's attention.
            prefixes: for each sentence, the words that its translations begin with; may be empty.
            sampling: draw n_best translations instead of searching for the best.
            on_done: called with the number of sentences that each batch completes.

        Raises:
            ValueError: if the model's scores are not numbers, or a prefix is longer than the position table.
            ChildProcessError: if one of the worker processes dies.
        """
        texts = [list(words) for words in sentences]
        parts = [self.rows(words) for words in texts]
        numbers = [(i, part) for i, rows in enumerate(parts) for part in range(len(rows))]
        done = on_done or (lambda _: None)
        done(sum(not rows for rows in parts))
        results = self.search(
            [row for rows in parts for row in rows],
            keep_attention,
            []
            if prefixes is None
            else [self._prefix(prefixes[i]) if not part else [] for i, part in numbers],
            None
            if sampling is None
            else lambda search, batch: sampling.sampler(search, [numbers[i] for i in batch]),
            lambda batch: done(sum(numbers[i][1] == 0 for i in batch)),
        )
        found = iter(results)
        return [
            self._assemble(words, rows, list(itertools.islice(found, len(rows))), keep_attention)
            for words, rows in zip(texts, parts, strict=True)
        ]

    def rows(self, words: list[str]) -> list[list[int]]:
        """Return the source ids to search, EOS last; several rows for a long sentence, none for no words."""
        ids, limit = self.source.encode(words)[:-1], self.model.max_source_tokens
        parts = [range(len(ids))] if ids else []
        if limit is not None and len(ids) > limit - 1:
            self._warn(len(ids), limit)
            parts = cut(words, self.source.word_of_piece(words), limit - 1)
        return [[*ids[part.start : part.stop], EOS] for part in parts]

    def search(
        self,
        rows: Sequence[list[int]],
        keep_attention: bool,
        prefixes: Sequence[list[int]] = (),
        sampler: Callable[[BeamSearch, Sequence[int]], Sampler] | None = None,
        on_batch: Callable[[Sequence[int]], object] = lambda _: None,
    ) -> list[list[SearchResult]]:
        """Return the n_best hypotheses of each row of source ids, in order.

        Args:
            rows: source ids.
            keep_attention: return each hypothesis's attention.
            prefixes: target tokens that each row's hypotheses begin with; empty: no row has a prefix.
            sampler: returns the sampler for the rows of a batch; None to search.
            on_batch: called with the rows of each finished batch.
        """
        p = self.params
        beam_search = BeamSearch(p.beam_size, p.alpha, p.min_length, p.n_best, p.legacy_eos, keep_attention)
        results: list[list[SearchResult]] = [[] for _ in rows]
        several = list(batches([len(row) for row in rows], p.batch_sentences))

        def search_batch(batch: Sequence[int]) -> list[list[SearchResult]]:
            searcher = beam_search if sampler is None else sampler(beam_search, batch)
            given = [prefixes[i] for i in batch] if prefixes else []
            return self._search_batch(searcher, [rows[i] for i in batch], given)

        if self.processes > 1 and len(several) > 1:
            self._search_batch(beam_search, [rows[several[-1][-1]]], [])  # sets up what processes then share
        for done, hypotheses in run_in_processes(search_batch, several, self.processes):
            for number, ranked in zip(several[done], hypotheses, strict=True):
                results[number] = ranked
            on_batch(several[done])
        return results

    def _search_batch(
        self, search: BeamSearch | Sampler, rows: Sequence[list[int]], prefixes: Sequence[list[int]]
    ) -> list[list[SearchResult]]:
        source, lengths = pad(rows).to(self.device), [len(row) - 1 for row in rows]
        if self.params.max_length_of == "batch":
            lengths = [max(lengths)] * len(rows)
        limits = [self._longest(length) for length in lengths]
        if prefixes:
            limits = [max(limit, len(prefix)) for limit, prefix in zip(limits, prefixes, strict=True)]
        if self.selection is None:
            return search.search(self.model, source, limits, prefixes)
        needed = np.array([id_ for prefix in prefixes for id_ in prefix], dtype=np.int64)
        selected = self.selection.tokens(source.cpu().numpy(), needed)
        model = self.model.restrict(torch.from_numpy(selected).to(self.device))
        places = [np.searchsorted(selected, prefix).tolist() for prefix in prefixes]
        return [
            [replace(found, tokens=selected[found.tokens].tolist()) for found in ranked]
            for ranked in search.search(model, source, limits, places)
        ]

    def _prefix(self, words: Sequence[str]) -> list[int]:
        """Return the ids of the words that a translation begins with."""
        ids, positions = self.target.encode(list(words))[:-1], self.model.max_target_tokens
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

    def _assemble(
        self,
        words: list[str],
        rows: Sequence[list[int]],
        found: Sequence[list[SearchResult]],
        keep_attention: bool,
    ) -> list[Hypothesis]:
        """Join the hypotheses of a sentence's parts by rank: best with best, and so on."""
        if not found:
            nothing = Attention(np.zeros((0, 0), dtype=np.float32), [], [])
            return [Hypothesis([], [], 0.0, 0.0, [], [], nothing if keep_attention else None)]
        pieces = iter(self.source.word_of_piece(words))
        owners = [list(itertools.islice(pieces, len(row) - 1)) for row in rows]
        joined = [
            self._join([ranked[min(rank, len(ranked) - 1)] for ranked in found], owners)
            for rank in range(max(map(len, found)))
        ]
        if keep_attention:
            blocks = [ranked[0].attention for ranked in found if ranked[0].attention is not None]
            labels = [*self.source.pieces(words), self.source.vocabulary.entry(EOS)]
            attention = Attention(block_diagonal(blocks), labels, joined[0].tokens)
            joined[0] = replace(joined[0], attention=attention)
        return joined

    def _join(self, hypotheses: Sequence[SearchResult], owners: Sequence[list[int]]) -> Hypothesis:
        """Return a hypothesis for a sentence, given one for each part and the word of each of its pieces."""
        tokens, sources = list[int](), list[int]()
        words, unknowns = list[str](), list[Unknown]()
        for number, (hypothesis, of_piece) in enumerate(zip(hypotheses, owners, strict=True), start=1):
            of_words = [of_piece[piece] for piece in hypothesis.sources]
            unknowns += self._unknowns(hypothesis, of_words, first_word=len(words))
            words += self.target.decode(hypothesis.tokens)
            end = len(hypothesis.tokens) - (number < len(hypotheses))  # only the last part keeps its EOS
            tokens += hypothesis.tokens[:end]
            sources += of_words[:end]
        total = sum(hypothesis.log_likelihood for hypothesis in hypotheses)
        length = sum(len(hypothesis.tokens) for hypothesis in hypotheses)
        return Hypothesis(
            tokens=[self.target.vocabulary.entry(token) for token in tokens],
            words=words,
            log_likelihood=total,
            score=total / length**self.params.alpha,
            sources=sources,
            unknowns=unknowns,
        )

    def _unknowns(self, hypothesis: SearchResult, sources: Sequence[int], first_word: int) -> list[Unknown]:
        """Return the unknown words; if a word has several unknown pieces, the first counts."""
        unknowns: dict[int, Unknown] = {}
        for i, token in enumerate(hypothesis.tokens):
            if token == UNK:
                # An unknown piece spells something, so the hypothesis up to it ends in the piece's word.
                word = first_word + len(self.target.decode(hypothesis.tokens[: i + 1])) - 1
                unknowns.setdefault(word, Unknown(word, sources[i], hypothesis.at_end[i]))
        return list(unknowns.values())

    def _warn(self, tokens: int, limit: int) -> None:
        if not self.warned:
            self.warned = True
            warnings.warn(
                f"A sentence has {tokens} tokens but the model's position table takes {limit - 1}; such long "
                "sentences are translated in parts. Give one sentence per line for better translations.",
                stacklevel=2,
            )
