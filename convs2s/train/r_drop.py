"""R-Drop: two passes with different dropout are made to agree (Liang et al., 2021)."""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from convs2s.model.seq2seq import Seq2Seq
from convs2s.train.loss import SummedLoss


class RDropLoss(SummedLoss):
    """The mean loss of two passes, and the divergence between them.

    Args:
        weight: of the divergence, the mean of both directions of Kullback and Leibler's.
    """

    def __init__(self, model: Seq2Seq, smoothing: float, word_dropout: float, weight: float) -> None:
        super().__init__(model, smoothing, self._loss, word_dropout)
        self.weight = weight

    def forward(
        self,
        source: Int[Tensor, "B S"],
        target: Int[Tensor, "B T"],
        real: Int[Tensor, "N"],
        entries: Int[Tensor, "V"] | None,
    ) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
        """Return the summed loss and its likelihood part, in nats, over target tokens."""
        twice = torch.cat([real, real + target.numel()])
        return super().forward(source.repeat(2, 1), target.repeat(2, 1), twice, entries)

    def _loss(
        self,
        features: Float[Tensor, "N F"],
        weight: Float[Tensor, "V F"],
        bias: Float[Tensor, "V"],
        target: Int[Tensor, "N"],
        smoothing: float,
    ) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
        logits = F.linear(features, weight, bias).float()
        logs = logits.log_softmax(dim=1)
        likelihood = F.nll_loss(logs, target, reduction="sum") / 2
        total = (1.0 - smoothing) * likelihood - smoothing * logs.mean(dim=1).sum() / 2
        one, other = logs.chunk(2)
        divergence = ((one.exp() - other.exp()) * (one - other)).sum() / 2
        return total + self.weight / 2 * divergence, likelihood.detach()
