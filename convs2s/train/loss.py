"""The loss of a batch: token-level negative log-likelihood (§4.2)."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from convs2s.ids.vocabulary import EOS, PAD
from convs2s.model.seq2seq import Seq2Seq

SoftmaxLoss = Callable[[Tensor, Tensor, Tensor, Tensor, float], tuple[Tensor, Tensor]]
"""`softmax_loss`, or another function that computes the same."""
IGNORED = -100
"""A target that costs nothing, as PyTorch's cross_entropy has it."""


class SummedLoss(nn.Module):
    """Source and target ids -> summed loss; workers exchange the gradients of this module.

    Args:
        smoothing: probability mass spread evenly over all vocabulary entries; 0 in the paper (T36).
        softmax: computes the loss from the softmax layer's input.
    """

    def __init__(self, model: Seq2Seq, smoothing: float, softmax: SoftmaxLoss) -> None:
        super().__init__()
        self.model, self.smoothing, self.softmax = model, smoothing, softmax

    def forward(
        self,
        source: Int[Tensor, "B S"],
        target: Int[Tensor, "B T"],
        real: Int[Tensor, "N"] | None,
        entries: Int[Tensor, "V"] | None,
    ) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
        """Return the summed loss and its likelihood part, in nats, over target tokens.

        Args:
            real: indices of the non-padding tokens in the flattened target, the only ones to be scored; None
                to score padding, too, and ignore it.
            entries: the ids that the softmax is over, ascending, including all those in the target; None for
                the whole vocabulary.
        """
        start = target.new_full((len(target), 1), EOS)  # T19
        history = torch.cat([start, target[:, :-1]], dim=1)
        features, _, _ = self.model.features(history, self.model.encode(source))
        weight, bias = self.model.output_rows(entries)
        rows, tokens = features.flatten(0, 1), target.flatten()
        if real is not None:
            rows, tokens = rows[real], tokens[real]
        indices = tokens if entries is None else torch.searchsorted(entries, tokens)
        if real is None:
            indices = indices.masked_fill(tokens == PAD, IGNORED)
        return self.softmax(rows, weight, bias, indices, self.smoothing)


def softmax_loss(
    features: Float[Tensor, "N F"],
    weight: Float[Tensor, "V F"],
    bias: Float[Tensor, "V"],
    target: Int[Tensor, "N"],
    smoothing: float,
) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
    """Return the summed training loss of the softmax layer, and its summed likelihood part, in nats.

    Products may be in bfloat16; softmax and loss are in float32 (T38). The second result has no gradient.

    Args:
        target: indices of the targets within the entries, or IGNORED.
    """
    logits = F.linear(features, weight, bias).float()
    total = F.cross_entropy(logits, target, reduction="sum", label_smoothing=smoothing)
    if not smoothing:
        return total, total.detach()
    return total, F.cross_entropy(logits.detach(), target, reduction="sum")
