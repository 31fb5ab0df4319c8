"""The loss of a batch: token-level negative log-likelihood (§4.2), without keeping all scores in float32."""

import itertools
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from convs2s.model.seq2seq import Seq2Seq
from convs2s.text.vocabulary.vocabulary import EOS

# Scores per chunk of the softmax. On the CPU, 64 rows of a softmax over 8,000 entries, 2 MB in float32, stay
# in a core's cache while softmax, loss and gradient are computed. On a GPU each chunk costs a dozen kernel
# launches, so chunks only bound the memory: 512 MB.
SCORES_AT_ONCE = 1 << 19
SCORES_AT_ONCE_ELSEWHERE = 1 << 27


class SummedLoss(nn.Module):
    """Source and target ids -> summed loss; workers exchange the gradients of this module."""

    def __init__(self, model: Seq2Seq, smoothing: float) -> None:
        super().__init__()
        self.model = model
        self.smoothing = smoothing

    def forward(
        self,
        source: Int[Tensor, "B S"],
        target: Int[Tensor, "B T"],
        real: Int[Tensor, "N"],
        entries: Int[Tensor, "V"] | None,
    ) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
        """Return the summed loss and its likelihood part, in nats, over target tokens.

        Args:
            real: indices of the non-padding tokens in the flattened target.
            entries: the ids that the softmax is over, ascending, including all those in the target; None for
                the whole vocabulary.
        """
        start = target.new_full((len(target), 1), EOS)  # T19
        features, _ = self.model.features(
            torch.cat([start, target[:, :-1]], dim=1), self.model.encode(source)
        )
        wanted = target.flatten()[real]
        if entries is not None:
            wanted = torch.searchsorted(entries, wanted)
        return self.softmax_loss(features.flatten(0, 1)[real], wanted, entries)

    def softmax_loss(
        self,
        features: Float[Tensor, "N F"],
        wanted: Int[Tensor, "N"],
        entries: Int[Tensor, "V"] | None,
    ) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
        """Return the summed loss of these features and its likelihood part.

        Args:
            wanted: indices of the targets within the entries.
        """
        return negative_log_likelihood(features, *self.output_rows(entries), wanted, self.smoothing)

    def output_rows(
        self, entries: Int[Tensor, "V"] | None
    ) -> tuple[Float[Tensor, "V F"], Float[Tensor, "V"]]:
        """Return the softmax layer's weight and bias for these entries."""
        layer = self.model.output_layer
        if entries is None:
            return layer.weight, layer.bias
        return layer.weight.index_select(0, entries), layer.bias.index_select(0, entries)


def negative_log_likelihood(
    features: Float[Tensor, "N F"],
    weight: Float[Tensor, "V F"],
    bias: Float[Tensor, "V"],
    target: Int[Tensor, "N"],
    smoothing: float = 0.0,
    counted: Float[Tensor, "N"] | None = None,
) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
    """Return the summed training loss of the softmax layer, and its summed likelihood part, in nats.

    Equals cross_entropy(features @ weight.T + bias, target, reduction="sum"), gradients included. Products
    are in the dtype of `features`; softmax and loss in float32 (T38). The second result carries no gradient.

    Args:
        target: indices of the targets within the entries.
        smoothing: probability mass spread evenly over all vocabulary entries; 0 in the paper (T36).
        counted: 1 for the targets that count, 0 for the others; None if all count.
    """
    return _SoftmaxLoss.apply(features, weight, bias, target, smoothing, counted)  # type: ignore[no-any-return, no-untyped-call]


class _SoftmaxLoss(torch.autograd.Function):
    """Softmax layer and loss in one; the forward pass overwrites the scores with their gradients."""

    @staticmethod
    def forward(
        ctx: Any,
        features: Tensor,
        weight: Tensor,
        bias: Tensor,
        target: Tensor,
        smoothing: float,
        counted: Tensor | None,
    ) -> tuple[Tensor, Tensor]:
        """Return the summed loss and its likelihood part; save the gradients for backward."""
        wide = weight.to(features.dtype)
        scores = F.linear(features, wide, bias.to(features.dtype))  # (N, V); becomes its own gradient below
        differentiate = any(ctx.needs_input_grad)
        likelihood, total = _softmax_losses(scores, target, smoothing, counted, differentiate)
        if differentiate:
            ctx.save_for_backward(
                scores @ wide, scores.t() @ features, scores.sum(dim=0, dtype=torch.float32)
            )
            ctx.dtypes = features.dtype, weight.dtype, bias.dtype
        ctx.mark_non_differentiable(likelihood)
        return total, likelihood

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, Tensor, None, None, None]:
        """Scale the gradients of features, weight and bias computed in forward."""
        scale = gradients[0]
        features, weight, bias = (
            saved.to(dtype) * scale.to(dtype)
            for saved, dtype in zip(ctx.saved_tensors, ctx.dtypes, strict=True)
        )
        return features, weight, bias, None, None, None


def _softmax_losses(
    scores: Tensor, target: Tensor, smoothing: float, counted: Tensor | None, differentiate: bool
) -> tuple[Tensor, Tensor]:
    """Return summed likelihood loss and summed loss; if `differentiate`, `scores` becomes the gradient."""
    entries = scores.shape[1]
    at_once = max(1, (SCORES_AT_ONCE if scores.is_cpu else SCORES_AT_ONCE_ELSEWHERE) // entries)
    likelihood = scores.new_zeros((), dtype=torch.float32)
    uniform = torch.zeros_like(likelihood)
    counts = itertools.repeat(None) if counted is None else counted.split(at_once)
    for rows, targets, share in zip(scores.split(at_once), target.split(at_once), counts, strict=False):
        logs = torch.log_softmax(rows, dim=1, dtype=torch.float32)
        likelihood -= _total(logs.gather(1, targets[:, None])[:, 0], share)
        if smoothing:
            uniform -= _total(logs.mean(dim=1), share)
        if differentiate:
            gradient = logs.exp_()
            if smoothing:
                gradient -= smoothing / entries
            gradient[torch.arange(len(targets), device=target.device), targets] -= 1.0 - smoothing
            if share is None:
                rows.copy_(gradient)
            else:
                torch.mul(gradient, share[:, None], out=rows)
    return likelihood, (1.0 - smoothing) * likelihood + smoothing * uniform


def _total(values: Tensor, counted: Tensor | None) -> Tensor:
    """Return the sum of the values that count."""
    # Not a dot product, which would be in autocast's dtype.
    return (values if counted is None else values * counted).sum()
