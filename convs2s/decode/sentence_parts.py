"""A sentence's hypotheses in words, joined from its parts if it is longer than the position table (T18)."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float32

from convs2s.decode.translations import Attention, Hypothesis
from convs2s.decode.unknown_replacement import Unknown
from convs2s.ids.vocabulary import EOS, UNK
from convs2s.search.search import SearchResult
from convs2s.text.vocabulary.codec import Codec


@dataclass(frozen=True)
class SentencePart:
    """A sentence to search, or a part of one that is longer than the position table.

    Attributes:
        ids: of its source tokens, EOS last.
        prefix: target ids that its hypotheses begin with.
        sentence, part: its numbers, from 0.
    """

    ids: list[int]
    prefix: Sequence[int]
    sentence: int
    part: int


def join_parts(
    words: list[str],
    parts: Sequence[SentencePart],
    n_best_lists: Sequence[list[SearchResult]],
    source: Codec,
    target: Codec,
    keep_attention: bool,
) -> list[Hypothesis]:
    """Join the hypotheses of a sentence's parts by rank: best with best, and so on.

    Args:
        words: of the sentence, which has no parts if it has none.
        n_best_lists: hypotheses of each part, best first.
        keep_attention: give the best hypothesis its attention.
    """
    if not parts:
        nothing = Attention(np.zeros((0, 0), dtype=np.float32), [], [])
        return [Hypothesis([], [], 0.0, 0.0, [], [], nothing if keep_attention else None)]
    pieces = iter(source.word_of_piece(words))
    owners = [list(itertools.islice(pieces, len(part.ids) - 1)) for part in parts]
    joined = [
        join_hypotheses([ranked[min(rank, len(ranked) - 1)] for ranked in n_best_lists], owners, target)
        for rank in range(max(map(len, n_best_lists)))
    ]
    if keep_attention:
        blocks = [ranked[0].attention for ranked in n_best_lists if ranked[0].attention is not None]
        labels = [*source.pieces(words), source.vocabulary.entry(EOS)]
        attention = Attention(block_diagonal(blocks), labels, joined[0].tokens)
        joined[0] = replace(joined[0], attention=attention)
    return joined


def join_hypotheses(
    hypotheses: Sequence[SearchResult], owners: Sequence[list[int]], target: Codec
) -> Hypothesis:
    """Return a hypothesis for a sentence, given one for each part and the word of each of its pieces."""
    tokens = list[int]()
    sources = list[int]()
    source_pieces = list[int]()
    pieces_before = 0
    words = list[str]()
    unknowns = list[Unknown]()
    for number, (hypothesis, of_piece) in enumerate(zip(hypotheses, owners, strict=True), start=1):
        of_words = [of_piece[piece] for piece in hypothesis.sources]
        unknowns += list_unknowns(hypothesis, of_words, len(words), target)
        words += target.decode(hypothesis.tokens)
        is_last = number == len(hypotheses)
        length = len(hypothesis.tokens) if is_last else len(hypothesis.tokens) - 1  # without EOS
        tokens += hypothesis.tokens[:length]
        sources += of_words[:length]
        source_pieces += [pieces_before + piece for piece in hypothesis.sources[:length]]
        pieces_before += len(of_piece)
    return Hypothesis(
        tokens=[target.vocabulary.entry(token) for token in tokens],
        words=words,
        log_likelihood=sum(hypothesis.log_likelihood for hypothesis in hypotheses),
        score=sum(hypothesis.score for hypothesis in hypotheses) / len(hypotheses),
        sources=sources,
        unknowns=unknowns,
        source_pieces=source_pieces,
    )


def list_unknowns(
    hypothesis: SearchResult, sources: Sequence[int], first_word: int, target: Codec
) -> list[Unknown]:
    """Return the unknown words; if a word has several unknown pieces, the first counts."""
    unknowns: dict[int, Unknown] = {}
    for i, token in enumerate(hypothesis.tokens):
        if token == UNK:
            # An unknown piece spells something, so the hypothesis up to it ends in the piece's word.
            word = first_word + len(target.decode(hypothesis.tokens[: i + 1])) - 1
            unknowns.setdefault(word, Unknown(word, sources[i], hypothesis.at_end[i]))
    return list(unknowns.values())


def block_diagonal(blocks: Sequence[Float32[np.ndarray, "..."]]) -> Float32[np.ndarray, "T S"]:
    """Join the attention (T, S) of a sentence's parts, leaving out the EOS between them."""
    inner = [block[:-1, :-1] for block in blocks[:-1]] + [blocks[-1]]
    joined: Float32[np.ndarray, "T S"] = torch.block_diag(*map(torch.from_numpy, inner)).numpy()
    return joined
