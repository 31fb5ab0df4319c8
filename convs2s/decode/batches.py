"""Sentences to search -> parts that fit the position table (T18) -> batches of similar length."""

import itertools
from collections.abc import Iterator, Sequence

import torch
from jaxtyping import Int64
from torch import Tensor

from convs2s.ids.vocabulary import PAD
from convs2s.text.words.characters import SENTENCE_ENDS

CLAUSE_END = (",", ";", ":", "，", "；", "：", "—", "–")
# Limit on padded source tokens per batch, however long its sentences, to bound memory.
BATCH_TOKENS = 16_384
GPU_BATCH_TOKENS = 2 * BATCH_TOKENS
GPU_SENTENCES = 8
"""Times as many sentences on a GPU: a step takes it about as long, so the whole takes fewer steps."""
SCORE_BYTES = 12
"""Memory of a step for each hypothesis and token: logits, their logarithms, and one of both in bfloat16."""


def gpu_batch_sentences(batch_sentences: int, beam_size: int, entries: int, memory: int) -> int:
    """Return how many sentences a GPU translates at once; their scores take at most a quarter of its memory.

    Args:
        batch_sentences: the least.
        entries: target tokens with a score.
        memory: of the GPU, in bytes.
    """
    fit = memory // 4 // (beam_size * entries * SCORE_BYTES)
    return max(batch_sentences, min(GPU_SENTENCES * batch_sentences, fit))


def batches(
    lengths: Sequence[int], batch_sentences: int, batch_tokens: int = BATCH_TOKENS
) -> Iterator[list[int]]:
    """Yield the indices of sentences with these lengths, longest first, in batches of similar length."""
    order = sorted(range(len(lengths)), key=lambda i: -lengths[i])
    start = 0
    while start < len(order):
        fit = max(1, min(batch_sentences, batch_tokens // lengths[order[start]]))
        yield order[start : start + fit]
        start += fit


def pad_ids(rows: Sequence[Sequence[int]]) -> Int64[Tensor, "B S"]:
    """Return rows of ids as one tensor, with short rows padded at the end."""
    width = max(map(len, rows))
    return torch.tensor([[*row, *itertools.repeat(PAD, width - len(row))] for row in rows])


def cut(words: Sequence[str], word_of_piece: Sequence[int], limit: int) -> list[range]:
    """Return ranges of pieces that cover a sentence, none longer than `limit`.

    A part ends after the last sentence end in the second half of what fits, else after the last clause end,
    else after the last word end, else anywhere.

    Args:
        word_of_piece: for each piece, the index of its word.
        limit: most pieces in a part, at least 1.
    """
    parts = []
    start = 0
    pieces = len(word_of_piece)
    while pieces - start > limit:
        ends = range(start + limit, start + max(limit // 2, 1) - 1, -1)  # the longest first
        end = min(ends, key=lambda end: breach(words, word_of_piece, end))
        parts.append(range(start, end))
        start = end
    return [*parts, range(start, pieces)]


def breach(words: Sequence[str], word_of_piece: Sequence[int], end: int) -> int:
    """Return how bad it is to cut before piece `end`: 0 between sentences, to 3 within a word."""
    last = word_of_piece[end - 1]
    if word_of_piece[end] == last:
        return 3
    if words[last].endswith(SENTENCE_ENDS):
        return 0
    return 1 if words[last].endswith(CLAUSE_END) else 2
