"""Layers and loss of a training on a CPU, each in fewer passes over memory than PyTorch takes (§4.2).

They compute what `convs2s.model` and `convs2s.train.loss` do, with the same weights under the same names;
`convs2s.train.choose_layers` compares the two when a training is built. Dropout stores no mask: backward
recomputes the random bits of each position. Each call draws a key of 64 bits from PyTorch's generator, which
training seeds before every update. So masks differ between updates, layers, parts and workers, but a resumed
training draws the same ones.

oneDNN compiles code for each new shape of a product. The number of rows is rounded up to a multiple of ROWS,
so that a training has few shapes; the added rows are zeros, and change neither the result nor the gradients.
"""

import math
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from convs2s.engine.loops import run_loop
from convs2s.engine.train import loops as train_loops
from convs2s.model.glu_block import GluConvolution
from convs2s.model.multistep_attention import MultistepAttention

ROWS = 32
ENTRIES = 64  # the same for the vocabulary entries of the softmax layer

Key = tuple[np.float32, np.uint32, np.uint32, np.uint32]
"""Arguments of the loops: scale of the kept elements, threshold, two halves of a random key."""


def product_dtype(x: Tensor) -> torch.dtype:
    """Return the dtype of products with x: autocast's, if that is on (T38)."""
    return torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else x.dtype


def empty_rows(count: int, columns: int, dtype: torch.dtype) -> Float[Tensor, "R C"]:
    """Return a matrix with `count` uninitialized rows, rounded up with rows of zeros."""
    matrix = torch.empty(-(-count // ROWS) * ROWS, columns, dtype=dtype)
    matrix[count:].zero_()
    return matrix


def draw_key(probability: float) -> Key:
    """Draw the key of a dropout with this probability.

    An element is dropped if 32 random bits are less than the threshold, so the probability is exact to 2^-32.
    """
    first, second = torch.randint(2**32, (2,)).tolist() if probability else (0, 0)
    threshold = np.uint32(round(probability * 2**32))
    return np.float32(1.0 / (1.0 - probability)), threshold, np.uint32(first), np.uint32(second)


def drop(x: Float[Tensor, "*N C"], key: Key) -> Float[Tensor, "*N C"]:
    """Return x with the elements dropped that the key selects."""
    rows = x.contiguous().flatten(0, -2)
    result = torch.empty_like(rows)
    run_loop(train_loops.dropout, len(rows), rows.numel(), rows, result, *key)
    return result.view(x.shape)


def dropout(
    input: Float[Tensor, "..."], p: float = 0.5, training: bool = True, inplace: bool = False
) -> Float[Tensor, "..."]:
    """As torch.nn.functional.dropout, but never in place: zero some elements and scale the others."""
    if not training or not p:
        return input
    return _Dropout.apply(input, draw_key(p))  # type: ignore[no-any-return, no-untyped-call]


class FastDropout(nn.Dropout):
    """nn.Dropout, faster in training."""

    def forward(self, x: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """In training, zero some elements and scale the others."""
        return dropout(x, self.p, self.training)


class _Dropout(torch.autograd.Function):
    """Keeps the key for backward, which drops the same elements of the gradient."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, key: Key) -> Tensor:
        ctx.key = key
        return drop(x, key)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return drop(gradients[0], ctx.key), None


class FastGluConvolution(GluConvolution):
    """GluConvolution as one operation, faster in training."""

    def forward(self, x: Float[Tensor, "B N C"], left: int, right: int) -> Float[Tensor, "B N D"]:
        """Apply to every position of the sequence, zero-padded by `left` and `right` positions."""
        if not self.training:
            return super().forward(x, left, right)
        dtype = product_dtype(x)
        layer = self.window_map
        key = draw_key(self.dropout)
        return _GluConvolution.apply(  # type: ignore[no-any-return, no-untyped-call]
            x.to(dtype), layer.weight.to(dtype), layer.bias, self.kernel_width, left, key
        )


class _GluConvolution(torch.autograd.Function):
    """Keeps the windows after dropout, and their products with the weight, for backward."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, width: int, left: int, key: Key) -> Tensor:
        sentences, length, inputs = x.shape
        rows = sentences * length
        windows = empty_rows(rows, width * inputs, x.dtype)
        ctx.shape = x.shape
        ctx.window = (length, width, left, *key)  # arguments of the loops
        source = x.contiguous().view(rows, inputs)
        run_loop(train_loops.windows, sentences, windows.numel(), source, windows, *ctx.window)
        y = windows @ weight.t()
        h = x.new_empty(rows, len(weight) // 2)
        run_loop(train_loops.glu, rows, y.numel(), y, bias, h)
        ctx.save_for_backward(windows, weight, bias, y)
        return h.view(sentences, length, -1)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, Tensor, None, None, None]:
        windows, weight, bias, y = ctx.saved_tensors
        gh = gradients[0].contiguous().flatten(0, 1)
        gy = empty_rows(len(gh), y.shape[1], y.dtype)
        blocks = math.ceil(len(gh) / train_loops.BLOCK)
        sums = bias.new_empty(blocks, len(bias))
        run_loop(train_loops.glu_backward, blocks, y.numel(), gh, y, bias, gy, sums)
        gwindows = gy @ weight
        gx = gh.new_empty(len(gh), ctx.shape[2])
        run_loop(train_loops.windows_backward, ctx.shape[0], gwindows.numel(), gwindows, gx, *ctx.window)
        return gx.view(ctx.shape), gy.t() @ windows, sums.sum(dim=0), None, None, None


class _Softmax(torch.autograd.Function):
    """Softmax over the last dimension, in float32.

    PyTorch's gradient is rounded otherwise by one thread than by several.
    """

    @staticmethod
    def forward(ctx: Any, scores: Tensor) -> Tensor:
        weights = torch.softmax(scores, dim=-1, dtype=torch.float32)
        ctx.save_for_backward(weights)
        ctx.dtype = scores.dtype
        return weights

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        (weights,) = ctx.saved_tensors
        rows = weights.flatten(0, -2)
        result = torch.empty_like(rows)
        above = gradients[0].contiguous().view_as(rows)
        run_loop(train_loops.softmax_backward, len(rows), rows.numel(), above, rows, result)
        return result.view_as(weights).to(ctx.dtype)


class SoftmaxForAnyThreads(TorchFunctionMode):
    """Within it, the softmax of attention has a gradient that is the same for any number of threads."""

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if function is torch.softmax and kwargs == {"dim": -1, "dtype": torch.float32}:
            return _Softmax.apply(*args)  # type: ignore[no-untyped-call]
        return function(*args, **(kwargs or {}))


class FastMultistepAttention(MultistepAttention):
    """MultistepAttention with `SoftmaxForAnyThreads`."""

    def forward(self, *inputs: Any) -> tuple[Float[Tensor, "R T C"], Float[Tensor, "R T S"]]:
        """As MultistepAttention's."""
        with SoftmaxForAnyThreads():
            return super().forward(*inputs)


def fast_softmax_loss(
    features: Float[Tensor, "N F"],
    weight: Float[Tensor, "V F"],
    bias: Float[Tensor, "V"],
    target: Int[Tensor, "N"],
    smoothing: float,
) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
    """Return what `convs2s.train.loss.softmax_loss` does, with a single pass over the scores."""
    dtype = product_dtype(features)
    rows = empty_rows(len(features), features.shape[1], dtype)
    rows[: len(features)] = features
    padded = F.pad(weight.to(dtype), (0, 0, 0, -len(weight) % ENTRIES))
    return _SoftmaxLoss.apply(rows, padded, bias, target, smoothing)  # type: ignore[no-any-return, no-untyped-call]


class _SoftmaxLoss(torch.autograd.Function):
    """Keeps the gradient of the scores, which forward writes over the scores, for backward.

    Features and weight have extra rows of zeros, beyond the targets and entries. The scores there are zero,
    and so are the gradients that overwrite them: nothing needs to be cleared.
    """

    @staticmethod
    def forward(
        ctx: Any, features: Tensor, weight: Tensor, bias: Tensor, target: Tensor, smoothing: float
    ) -> tuple[Tensor, Tensor]:
        scores = features @ weight.t()  # (R, V); becomes its own gradient below
        blocks = math.ceil(len(target) / train_loops.BLOCK)
        differentiate = any(ctx.needs_input_grad)
        losses = bias.new_empty(len(target), 2)
        sums = bias.new_zeros(blocks, len(bias))
        run_loop(
            train_loops.softmax_loss, blocks, scores.numel(), scores, bias, target, smoothing, differentiate,
            losses, sums,
        )  # fmt: skip
        likelihood, uniform = losses.sum(dim=0)
        if differentiate:
            ctx.save_for_backward(features, weight, scores, sums.sum(dim=0))
        ctx.mark_non_differentiable(likelihood)
        return (1.0 - smoothing) * likelihood + smoothing * uniform, likelihood

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, Tensor, None, None]:
        features, weight, scores, column_sums = ctx.saved_tensors
        scale = gradients[0]
        gradient = (scores @ weight) * scale.to(scores.dtype)
        # Scaling the features is cheaper than scaling the product, which is as large as the weight.
        return gradient, scores.t() @ (features * scale.to(scores.dtype)), column_sums * scale, None, None
