"""Forced prefixes: translations that begin with given target tokens."""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor


def next_of_prefixes(
    prefixes: Sequence[Sequence[int]], sentences: NDArray[np.int64], step: int
) -> tuple[list[int], list[int]]:
    """Return which sentences are still within their prefix, and the token that each must take.

    Args:
        prefixes: target tokens of each sentence in the batch; empty if no sentence has a prefix.
        sentences: indices of the sentences still being translated.
        step: from 0.
    """
    if not prefixes:
        return [], []
    numbered = enumerate(sentences.tolist())
    inside = [(row, prefixes[i][step]) for row, i in numbered if step < len(prefixes[i])]
    return [row for row, _ in inside], [token for _, token in inside]


def keep_only(logits: Float[Tensor, "B H V"], rows: Sequence[int], tokens: Sequence[int]) -> None:
    """Rule out, in place, all tokens but one in each of the given rows of the batch."""
    if not rows:
        return
    index = torch.tensor(rows, device=logits.device)
    wanted = torch.tensor(tokens, device=logits.device)
    kept = logits[index, :, wanted]  # (N, H)
    logits[index] = -torch.inf
    logits[index, :, wanted] = kept
