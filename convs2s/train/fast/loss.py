"""The softmax layer's loss, with a single pass over the scores apart from the matrix products (§4.2)."""

from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from convs2s.engine import train_loops
from convs2s.engine.loops import run_loop
from convs2s.train.fast.gpu_layers import GpuLinear
from convs2s.train.fast.linear import FastLinear, product_dtype, round_rows
from convs2s.train.loss import SummedLoss, negative_log_likelihood

ENTRIES = 64  # inside the products, the number of vocabulary entries is rounded up to a multiple of this


class FastSummedLoss(SummedLoss):
    """SummedLoss, faster in training."""

    def softmax_loss(
        self,
        features: Float[Tensor, "N F"],
        wanted: Int[Tensor, "N"],
        entries: Int[Tensor, "V"] | None,
    ) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
        """Return the summed loss and its likelihood part, in nats."""
        if not self.training:
            return super().softmax_loss(features, wanted, entries)
        dtype = product_dtype(features)
        rows = round_rows(features.to(dtype))
        return _SoftmaxLoss.apply(rows, *self.padded_rows(entries, dtype), wanted, self.smoothing)  # type: ignore[no-any-return, no-untyped-call]

    def padded_rows(
        self, entries: Int[Tensor, "V"] | None, dtype: torch.dtype
    ) -> tuple[Float[Tensor, "W F"], Float[Tensor, "V"]]:
        """Return the softmax layer's weight for these entries, followed by rows of zeros, and its bias."""
        layer = self.model.output_layer
        if isinstance(layer, FastLinear) and entries is None:
            return layer.normalized(dtype), layer.bias
        weight, bias = self.output_rows(entries)
        return F.pad(weight.to(dtype), (0, 0, 0, -len(weight) % ENTRIES)), bias


class GpuSummedLoss(SummedLoss):
    """SummedLoss with the update's shared weight; positions may point to padding, which does not count."""

    def softmax_loss(
        self,
        features: Float[Tensor, "N F"],
        wanted: Int[Tensor, "N"],
        entries: Int[Tensor, "V"] | None,
    ) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
        """Return the summed loss and its likelihood part, in nats."""
        if not self.training or entries is not None:  # only recorded updates have such positions
            return super().softmax_loss(features, wanted, entries)
        counted = (wanted != self.model.padding_id).float()
        return negative_log_likelihood(features, *self.output_rows(None), wanted, self.smoothing, counted)

    def output_rows(
        self, entries: Int[Tensor, "V"] | None
    ) -> tuple[Float[Tensor, "V F"], Float[Tensor, "V"]]:
        """Return the softmax layer's weight and bias for these entries."""
        layer = self.model.output_layer
        if isinstance(layer, GpuLinear) and layer.shared is not None and entries is None:
            values = layer.shared()
            return values["weight"], values["bias"]
        return super().output_rows(entries)


class _SoftmaxLoss(torch.autograd.Function):
    """Features and weight have extra rows of zeros, beyond the targets and entries.

    The scores there are zero, and so are the gradients that overwrite them: nothing needs to be cleared.
    """

    @staticmethod
    def forward(
        ctx: Any, features: Tensor, weight: Tensor, bias: Tensor, wanted: Tensor, smoothing: float
    ) -> tuple[Tensor, Tensor]:
        scores = features @ weight.t()  # (R, V); becomes its own gradient below
        blocks, differentiate = -(-len(wanted) // train_loops.BLOCK), any(ctx.needs_input_grad)
        losses, sums = bias.new_empty(len(wanted), 2), bias.new_zeros(blocks, len(bias))
        options = smoothing, differentiate
        run_loop(
            train_loops.softmax_loss, blocks, scores.numel(), scores, bias, wanted, *options, losses, sums
        )
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
