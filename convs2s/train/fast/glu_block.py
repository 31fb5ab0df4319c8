"""The convolution of a block, with its dropout and gated linear unit, as one operation (§3.2)."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from convs2s.engine import train_loops
from convs2s.engine.loops import run_loop
from convs2s.model.glu_block import GluConvolution
from convs2s.train.fast.dropout import Key, draw_key
from convs2s.train.fast.linear import FastLinear, empty_rows, product_dtype


class FastGluConvolution(GluConvolution):
    """GluConvolution, faster in training."""

    window_map: FastLinear

    def forward(self, x: Float[Tensor, "B N C"], left: int, right: int) -> Float[Tensor, "B N D"]:
        """Apply to every position of the sequence, zero-padded by `left` and `right` positions."""
        if not self.training:
            return super().forward(x, left, right)
        dtype = product_dtype(x)
        weight = self.window_map.normalized(dtype)
        return _GluConvolution.apply(  # type: ignore[no-any-return, no-untyped-call]
            x.to(dtype), weight, self.window_map.bias, self.kernel_width, left, draw_key(self.dropout)
        )


class _GluConvolution(torch.autograd.Function):
    """Keeps the windows after dropout, and their products with the weight, for backward."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, width: int, left: int, key: Key) -> Tensor:
        sentences, length, inputs = x.shape
        rows = sentences * length
        windows = empty_rows(rows, width * inputs, x.dtype)
        ctx.shape, ctx.window = x.shape, (length, width, left, *key)
        run_loop(
            train_loops.windows,
            sentences,
            windows.numel(),
            x.contiguous().view(rows, inputs),
            windows,
            *ctx.window,
        )
        y = windows @ weight.t()
        h = x.new_empty(rows, len(weight) // 2)
        run_loop(train_loops.glu, rows, y.numel(), y, bias, h)
        ctx.save_for_backward(windows, weight, bias, y)
        return h.view(sentences, length, -1)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, Tensor, None, None, None]:
        windows, weight, bias, y = ctx.saved_tensors
        gh = gradients[0].contiguous().flatten(0, 1)
        gy, blocks = empty_rows(len(gh), y.shape[1], y.dtype), -(-len(gh) // train_loops.BLOCK)
        sums = bias.new_empty(blocks, len(bias))
        run_loop(train_loops.glu_backward, blocks, y.numel(), gh, y, bias, gy, sums)
        gwindows = gy @ weight
        gx = gh.new_empty(len(gh), ctx.shape[2])
        run_loop(train_loops.windows_backward, ctx.shape[0], gwindows.numel(), gwindows, gx, *ctx.window)
        return gx.view(ctx.shape), gy.t() @ windows, sums.sum(dim=0), None, None, None
