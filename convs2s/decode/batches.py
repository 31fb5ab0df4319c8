"""Sentences to search -> batches of similar length that fit in memory."""

import itertools
from collections.abc import Iterator, Sequence

import torch
from jaxtyping import Int64
from torch import Tensor

from convs2s.text.vocabulary.vocabulary import PAD

# Limit on padded source tokens per batch, however long its sentences, to bound memory.
BATCH_TOKENS = 16_384


def batches(lengths: Sequence[int], batch_sentences: int) -> Iterator[list[int]]:
    """Yield the indices of sentences with these lengths, longest first, in batches of similar length."""
    order = sorted(range(len(lengths)), key=lambda i: -lengths[i])
    start = 0
    while start < len(order):
        fit = max(1, min(batch_sentences, BATCH_TOKENS // lengths[order[start]]))
        yield order[start : start + fit]
        start += fit


def padded(rows: Sequence[Sequence[int]]) -> Int64[Tensor, "B S"]:
    """Return rows of ids as one tensor, with short rows padded at the end."""
    width = max(map(len, rows))
    return torch.tensor([[*row, *itertools.repeat(PAD, width - len(row))] for row in rows])
