"""Dropout in one pass, without a stored mask: backward recomputes the random bits of each position (§4.2).

Each call draws a key of 64 bits from PyTorch's generator, which training seeds before every update. So masks
differ between updates, layers, parts and workers, but a resumed training draws the same ones.
"""

from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from convs2s.engine import train_loops
from convs2s.engine.loops import run_loop

Key = tuple[np.float32, np.uint32, np.uint32, np.uint32]


def draw_key(probability: float) -> Key:
    """Return the arguments of the loops: scale of the kept elements, threshold, two halves of a random key.

    An element is dropped if 32 random bits are less than the threshold, so the probability is exact to 2^-32.
    """
    first, second = torch.randint(2**32, (2,)).tolist() if probability else (0, 0)
    threshold = np.uint32(round(probability * 2**32))
    return np.float32(1.0 / (1.0 - probability)), threshold, np.uint32(first), np.uint32(second)


class FastDropout(nn.Dropout):
    """nn.Dropout, faster."""

    def forward(self, x: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """In training, zero some elements and scale the others."""
        if not self.training or not self.p:
            return x
        return _Dropout.apply(x, draw_key(self.p))  # type: ignore[no-any-return, no-untyped-call]


class _Dropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, key: Key) -> Tensor:
        ctx.key = key
        return drop(x, key)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return drop(gradients[0], ctx.key), None


def drop(x: Float[Tensor, "*N C"], key: Key) -> Float[Tensor, "*N C"]:
    """Return x with the elements dropped that the key selects."""
    rows = x.contiguous().flatten(0, -2)
    result = torch.empty_like(rows)
    run_loop(train_loops.dropout, len(rows), rows.numel(), rows, result, *key)
    return result.view(x.shape)
