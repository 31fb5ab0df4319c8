"""Words in, words out: encode, batch by length, search, spell; whatever the length (§4.3, T18)."""

import itertools
import math
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float32, Int64
from torch import Tensor

from convs2s.config.translate import TranslateParams
from convs2s.decode.beam_search import BeamSearch, Hypothesis
from convs2s.decode.ensemble import Ensemble
from convs2s.decode.hypotheses import Attention, Sentence, TextHypothesis
from convs2s.decode.long_sentences import cut
from convs2s.decode.unknown_replacement import Unknown
from convs2s.model.seq2seq import Seq2Seq
from convs2s.model.storage import load_model
from convs2s.text.vocabulary.codec import Codec
from convs2s.text.vocabulary.imported_codec import load_codec
from convs2s.text.vocabulary.selection import VocabularySelection
from convs2s.text.vocabulary.vocabulary import EOS, PAD, UNK

# Padded source tokens of a batch at most, whatever its sentences: bounds memory where they are long.
BATCH_TOKENS = 16_384


@dataclass(frozen=True)
class Found:
    """A sentence with its hypotheses, and the best one's attention if it was asked for."""

    sentence: Sentence
    attention: Attention | None


@dataclass(frozen=True)
class Part:
    """So much of a sentence as fits the position table: all of it, as a rule.

    Attributes:
        sentence: index of the sentence.
        start: index of the part's first piece in the sentence.
        ids: of its pieces, and an end mark.
    """

    sentence: int
    start: int
    ids: list[int]


class WordTranslator:
    """A model or an ensemble with the codecs of both sides.

    Args:
        model: in eval mode; searched on `device`, where it must be.
        source: codec of the source side.
        target: codec of the target side.
        params: of the search.
        device: where the model is.
        selection: of the target types of a batch (§5.4); None for all.
    """

    def __init__(
        self,
        model: Seq2Seq | Ensemble,
        source: Codec,
        target: Codec,
        params: TranslateParams,
        device: torch.device,
        selection: VocabularySelection | None = None,
    ) -> None:
        self.selection = selection
        self.model, self.source, self.target = model, source, target
        self.params, self.device = params, device
        self.warned = False

    def translate(self, sentences: Sequence[Sequence[str]], keep_attention: bool) -> list[Found]:
        """Return n_best hypotheses of each sentence, in order.

        A sentence without words has one empty hypothesis. One that is longer than the position table is
        translated in parts, with one warning.

        Raises:
            ValueError: if the model's scores are not numbers.
        """
        texts = [list(words) for words in sentences]
        words_of_pieces = [self.source.word_of_piece(words) for words in texts]
        parts = [
            part
            for number, (words, word_of_piece) in enumerate(zip(texts, words_of_pieces, strict=True))
            for part in self._parts(number, words, word_of_piece)
        ]
        found: list[list[tuple[Part, list[Hypothesis]]]] = [[] for _ in texts]
        for part, hypotheses in zip(parts, self._search_all(parts, keep_attention), strict=True):
            found[part.sentence].append((part, hypotheses))
        return [
            self._assemble(*sentence, keep_attention)
            for sentence in zip(texts, words_of_pieces, found, strict=True)
        ]

    def _parts(self, number: int, words: list[str], word_of_piece: Sequence[int]) -> Iterator[Part]:
        """Yield the parts of a sentence; none if it has no words."""
        ids = self.source.encode(words)[:-1]
        limit = self.model.max_source_tokens
        if limit is not None and len(ids) > limit - 1:
            self._warn(len(ids), limit)
            for part in cut(words, word_of_piece, limit - 1):
                yield Part(number, part.start, [*ids[part.start : part.stop], EOS])
        elif ids:
            yield Part(number, 0, [*ids, EOS])

    def _warn(self, tokens: int, limit: int) -> None:
        if not self.warned:
            self.warned = True
            warnings.warn(
                f"A sentence has {tokens} tokens but the model's position table takes {limit - 1}; it and "
                "others like it are translated in parts. Give one sentence a line for better translations.",
                stacklevel=2,
            )

    def _search_all(self, parts: Sequence[Part], keep_attention: bool) -> list[list[Hypothesis]]:
        p = self.params
        search = BeamSearch(p.beam_size, p.alpha, p.min_length, p.n_best, p.legacy_eos, keep_attention)
        results: list[list[Hypothesis]] = [[] for _ in parts]
        for batch in batches(parts, p.batch_sentences):
            found = self._search_batch(search, [parts[i] for i in batch])
            for number, hypotheses in zip(batch, found, strict=True):
                results[number] = hypotheses
        return results

    def _search_batch(self, search: BeamSearch, parts: Sequence[Part]) -> list[list[Hypothesis]]:
        params, longest = self.params, self.model.max_target_tokens
        lengths = [len(part.ids) - 1 for part in parts]
        # 1e-9: the product of 0.58 and 50 must not fall short of 29.
        limits = [math.floor(params.max_length_ratio * n + params.max_length_extra + 1e-9) for n in lengths]
        if longest is not None:
            limits = [min(limit, longest - 1) for limit in limits]
        source = padded([part.ids for part in parts]).to(self.device)
        if self.selection is None:
            return search.search(self.model, source, limits)
        types = self.selection.types(source.cpu().numpy())
        model = self.model.restricted(torch.from_numpy(types).to(self.device))
        return [
            [replace(one, tokens=types[one.tokens].tolist()) for one in ranked]
            for ranked in search.search(model, source, limits)
        ]

    def _assemble(
        self,
        words: list[str],
        word_of_piece: Sequence[int],
        parts: Sequence[tuple[Part, list[Hypothesis]]],
        keep_attention: bool,
    ) -> Found:
        """Join the parts of a sentence, the first with the first hypotheses, and so on."""
        if not parts:
            empty = TextHypothesis([], [], 0.0, 0.0, [], [])
            nothing = Attention(np.zeros((0, 0), dtype=np.float32), [], [])
            return Found(Sentence(words, [empty]), nothing if keep_attention else None)
        ranks = max(len(hypotheses) for _, hypotheses in parts)
        joined = [
            self._join([(part, ranked[min(rank, len(ranked) - 1)]) for part, ranked in parts], word_of_piece)
            for rank in range(ranks)
        ]
        if not keep_attention:
            return Found(Sentence(words, joined), None)
        blocks = [ranked[0].attention for _, ranked in parts if ranked[0].attention is not None]
        labels = [*self.source.pieces(words), self.source.vocabulary.type(EOS)]
        return Found(Sentence(words, joined), Attention(block_diagonal(blocks), labels, joined[0].tokens))

    def _join(self, parts: Sequence[tuple[Part, Hypothesis]], word_of_piece: Sequence[int]) -> TextHypothesis:
        """Return one hypothesis of a sentence from one of each of its parts."""
        tokens, sources = list[int](), list[int]()
        words, unknowns = list[str](), list[Unknown]()
        for number, (part, hypothesis) in enumerate(parts):
            of_words = [word_of_piece[part.start + piece] for piece in hypothesis.sources]
            unknowns += self._unknowns(hypothesis, of_words, first_word=len(words))
            words += self.target.decode(hypothesis.tokens)
            end = len(hypothesis.tokens) - (number < len(parts) - 1)  # one end mark, the last part's
            tokens += hypothesis.tokens[:end]
            sources += of_words[:end]
        total = sum(hypothesis.log_likelihood for _, hypothesis in parts)
        length = sum(len(hypothesis.tokens) for _, hypothesis in parts)
        return TextHypothesis(
            tokens=[self.target.vocabulary.type(token) for token in tokens],
            words=words,
            log_likelihood=total,
            score=total / length**self.params.alpha,
            sources=sources,
            unknowns=unknowns,
        )

    def _unknowns(self, hypothesis: Hypothesis, sources: Sequence[int], first_word: int) -> list[Unknown]:
        """Return the unknown words; a word with several unknown pieces counts by its first."""
        unknowns: dict[int, Unknown] = {}
        for i, token in enumerate(hypothesis.tokens):
            if token == UNK:
                # An unknown piece spells something, so up to it the hypothesis ends in its word.
                word = first_word + len(self.target.decode(hypothesis.tokens[: i + 1])) - 1
                unknowns.setdefault(word, Unknown(word, sources[i], hypothesis.at_end[i]))
        return list(unknowns.values())


def load_words(
    models: Sequence[Path],
    vocabulary: Path,
    candidates: Path,
    params: TranslateParams,
    device: str | None = None,
) -> WordTranslator:
    """Load models, several as an ensemble, and the codecs of both sides.

    Args:
        models: folders with model.json and weights.safetensors.
        vocabulary: folder of the stage vocabulary.
        candidates: candidates.npz of the stage candidates; read only if `params` select target types.
        params: of the search.
        device: such as cpu, cuda or cuda:1; None takes a GPU if there is one.

    Raises:
        FileNotFoundError: if a file is missing.
        ValueError: if a file is damaged, the device is not there, or a model or the candidates do not fit
            the vocabulary.
    """
    place = find_device(device)
    source, target = load_codec(vocabulary, "source"), load_codec(vocabulary, "target")
    members = [load_member(folder, vocabulary, (source, target), params, place) for folder in models]
    model: Seq2Seq | Ensemble = members[0] if len(members) == 1 else Ensemble(members)
    wanted = params.selection
    selection = (
        VocabularySelection.load(candidates, wanted.common, wanted.candidates, len(target.vocabulary))
        if wanted
        else None
    )
    return WordTranslator(model, source, target, params, place, selection)


def load_member(
    folder: Path, vocabulary: Path, codecs: tuple[Codec, Codec], params: TranslateParams, device: torch.device
) -> Seq2Seq:
    """Load one model and check that its vocabularies are these."""
    model = load_model(folder, device)
    sizes = (model.source_embedding.words.num_embeddings, model.output_layer.out_features)
    for side, size, codec in zip(("source", "target"), sizes, codecs, strict=True):
        if size != len(codec.vocabulary):
            raise ValueError(
                f"{folder} was trained with {size:,} {side} types but {vocabulary / side}.tsv has "
                f"{len(codec.vocabulary):,} (3 special ones included). Wanted the vocabulary it was trained "
                "with: run `dvc repro`, or fetch the whole folder again."
            )
    return model.to(torch.bfloat16) if params.precision == "bfloat16" else model


def find_device(name: str | None) -> torch.device:
    """Return a device by name; without one a GPU if there is one, else the CPU.

    Raises:
        ValueError: if there is no such device.
    """
    if name is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise ValueError(f"device {name!r} is unknown; wanted cpu, cuda, or cuda: and a number.") from None
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise ValueError(
            f"device {name!r} is not there: PyTorch sees {torch.cuda.device_count()} GPUs. Wanted one of "
            "them, or cpu."
        )
    return device


def batches(parts: Sequence[Part], batch_sentences: int) -> Iterator[list[int]]:
    """Yield indices of parts, longest first, in batches of like length that fit in memory."""
    order = sorted(range(len(parts)), key=lambda i: -len(parts[i].ids))
    start = 0
    while start < len(order):
        fit = max(1, min(batch_sentences, BATCH_TOKENS // len(parts[order[start]].ids)))
        yield order[start : start + fit]
        start += fit


def padded(rows: Sequence[Sequence[int]]) -> Int64[Tensor, "B S"]:
    """Return rows of ids as one tensor, padding behind the short ones."""
    width = max(map(len, rows))
    return torch.tensor([[*row, *itertools.repeat(PAD, width - len(row))] for row in rows])


def block_diagonal(blocks: Sequence[Float32[np.ndarray, "..."]]) -> Float32[np.ndarray, "T S"]:
    """Join the attention (T, S) of a sentence's parts; the end marks between them are left out."""
    inner = [block[:-1, :-1] for block in blocks[:-1]] + [blocks[-1]]
    rows, columns = (np.cumsum([0, *(block.shape[axis] for block in inner)]) for axis in (0, 1))
    joined = np.zeros((rows[-1], columns[-1]), dtype=np.float32)
    for block, row, column in zip(inner, rows, columns, strict=False):
        joined[row : row + block.shape[0], column : column + block.shape[1]] = block
    return joined
