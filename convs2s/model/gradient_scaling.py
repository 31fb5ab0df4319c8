"""Scaling of the gradient that reaches the encoder (§3.4, T6)."""

from typing import Any

import torch
from torch import Tensor


class _ScaleGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, scale: float) -> Tensor:
        ctx.scale = scale
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return gradients[0] * ctx.scale, None


def scale_gradient(x: Tensor, scale: float) -> Tensor:
    """Return x unchanged; its gradient is multiplied by `scale` on the way back."""
    result: Tensor = _ScaleGradient.apply(x, scale)  # type: ignore[no-untyped-call]
    return result
