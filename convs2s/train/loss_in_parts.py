"""The loss of the softmax layer in parts, so that the scores of an update are never all in memory (T38).

At 16,000 tokens and 40,000 entries they and what the loss makes of them take half of an update's memory. Here
`softmax_loss` is called for some tokens at a time, and their gradients are computed before those of the next.

No GPU has measured it, so an update is computed in parts only where it would otherwise not fit.
"""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from convs2s.train.loss import softmax_loss

PART_BYTES = 512 << 20
"""Least size of a part's scores in float32, so that small updates, such as the paper's, have one part.

A part takes 16 operations, 31 with label smoothing, for which a GPU waits if it has little to compute.
"""
MOST_PARTS = 8
"""Each adds its gradients to those of the parts before, which are as large as the layer's weights."""


class LossInParts:
    """`softmax_loss`, with less memory; equal to it if there is one part, else within rounding.

    Args:
        part_bytes: least size of a part's scores in float32.
        is_used: False to compute at once until it is set.

    Attributes:
        most_parts: of the calls so far, whether parts were used or not.
    """

    def __init__(self, part_bytes: int = PART_BYTES, *, is_used: bool = True) -> None:
        self.part_bytes, self.is_used = part_bytes, is_used
        self.most_parts = 1

    def __call__(
        self,
        features: Float[Tensor, "N F"],
        weight: Float[Tensor, "V F"],
        bias: Float[Tensor, "V"],
        target: Int[Tensor, "N"],
        smoothing: float,
    ) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
        """Return what `softmax_loss` does."""
        parts = min(MOST_PARTS, len(features), 4 * len(features) * len(weight) // self.part_bytes)
        self.most_parts = max(parts, self.most_parts)
        if parts < 2 or not self.is_used:
            return softmax_loss(features, weight, bias, target, smoothing)
        tokens = -(-len(features) // parts)
        is_trained = torch.is_grad_enabled()
        return _SumOfParts.apply(  # type: ignore[no-any-return, no-untyped-call]
            features, weight, bias, target, smoothing, tokens, is_trained
        )


class _SumOfParts(torch.autograd.Function):
    """Keeps the gradients, which forward computes, for backward."""

    @staticmethod
    def forward(
        ctx: Any,
        features: Tensor,
        weight: Tensor,
        bias: Tensor,
        target: Tensor,
        smoothing: float,
        tokens: int,
        is_trained: bool,
    ) -> tuple[Tensor, Tensor]:
        layer = [x.detach().requires_grad_() for x in (weight, bias)]
        layer_gradients = [torch.zeros_like(x) for x in layer] if is_trained else []
        totals, likelihoods, feature_gradients = [], [], []
        for rows, part in zip(features.split(tokens), target.split(tokens), strict=True):
            inputs = (rows.detach().requires_grad_(), layer[0], layer[1])
            with torch.set_grad_enabled(is_trained):
                total, likelihood = softmax_loss(*inputs, part, smoothing)
            totals.append(total.detach())
            likelihoods.append(likelihood)
            if is_trained:
                of_rows, *of_layer = torch.autograd.grad(total, inputs)
                feature_gradients.append(of_rows)
                for total_gradient, gradient in zip(layer_gradients, of_layer, strict=True):
                    total_gradient.add_(gradient)
        if is_trained:
            ctx.save_for_backward(torch.cat(feature_gradients), *layer_gradients)
        summed_likelihood = torch.stack(likelihoods).sum()
        ctx.mark_non_differentiable(summed_likelihood)
        return torch.stack(totals).sum(), summed_likelihood

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        scaled = [gradient * gradients[0] for gradient in ctx.saved_tensors]
        return (*scaled, None, None, None, None)
