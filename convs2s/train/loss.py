"""The loss of a batch: token-level negative log-likelihood (§4.2)."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from convs2s.ids.vocabulary import EOS
from convs2s.model.seq2seq import Seq2Seq

SoftmaxLoss = Callable[[Tensor, Tensor, Tensor, Tensor, float], tuple[Tensor, Tensor]]
"""`softmax_loss`, or another function that computes the same."""


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
        history = torch.cat([start, target[:, :-1]], dim=1)
        features, _, _ = self.model.features(history, self.model.encode(source))
        weight, bias = self.model.output_rows(entries)
        indices = target.flatten()[real]
        if entries is not None:
            indices = torch.searchsorted(entries, indices)
        return self.softmax(features.flatten(0, 1)[real], weight, bias, indices, self.smoothing)


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
        target: indices of the targets within the entries.
    """
    logits = F.linear(features, weight, bias).float()
    total = F.cross_entropy(logits, target, reduction="sum", label_smoothing=smoothing)
    if not smoothing:
        return total, total.detach()
    return total, F.cross_entropy(logits.detach(), target, reduction="sum")
