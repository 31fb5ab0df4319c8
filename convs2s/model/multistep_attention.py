"""Multi-step attention: each decoder layer attends anew to the encoder (§3.3)."""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from convs2s.model.glu_block import SQRT_HALF
from convs2s.model.initialization import linear


@dataclass(frozen=True)
class Memory:
    """What the decoder sees of the source: a key-value memory (§3.3).

    Attributes:
        keys: z, the encoder output.
        values: z + e, scaled by sqrt(0.5) unless the paper's text is taken literally (T4).
        padding: True at positions without a token; None if there are none.
        lengths: tokens of each sentence, EOS included.
    """

    keys: Float[Tensor, "B S E"]
    values: Float[Tensor, "B S E"]
    padding: Bool[Tensor, "B S"] | None
    lengths: Int[Tensor, "B"]

    def select(self, sentences: Int[Tensor, "R"]) -> "Memory":
        """Return the memory of these sentences, in this order; rows may repeat."""
        padding = None if self.padding is None else self.padding[sentences]
        return Memory(self.keys[sentences], self.values[sentences], padding, self.lengths[sentences])


def attend(
    d: Float[Tensor, "B T E"], memory: Memory
) -> tuple[Float[Tensor, "B T E"], Float[Tensor, "B T S"]]:
    """Attend from decoder summaries d to source positions (§3.3, eq. 1 and 2).

    Returns:
        The conditional input c, scaled by m * sqrt(1/m), and the weights, which sum to 1 over S.
    """
    scores = d @ memory.keys.transpose(1, 2)  # (B, T, S)
    if memory.padding is not None:
        scores = scores.masked_fill(memory.padding[:, None, :], -math.inf)
    weights = torch.softmax(scores, dim=-1, dtype=torch.float32)
    # A mean of m vectors has 1/m of their variance; m * sqrt(1/m) restores it (§3.4). m counts only real
    # tokens (T8); otherwise c would depend on the padding of the batch.
    scale = memory.lengths.sqrt()[:, None, None]
    values = memory.values
    # The scale stays float32 even in bfloat16 (T38): rounded, it would be off by up to 0.4 %.
    return ((weights.to(values.dtype) @ values) * scale).to(values.dtype), weights


class MultistepAttention(nn.Module):
    """The attention of one decoder layer, with its maps from and to the layer's width (§3.3, T1).

    Args:
        channels: of the decoder layer.
        embedding_size: of d, keys and values.
        extra_scaling: sqrt(0.5) on d and on c + h, as in the reference implementations (T4).
    """

    def __init__(self, channels: int, embedding_size: int, extra_scaling: bool) -> None:
        super().__init__()
        self.summary_map = linear(channels, embedding_size)  # W_d, b_d
        self.context_map = linear(embedding_size, channels)
        self.scale = SQRT_HALF if extra_scaling else 1.0

    def forward(
        self, h: Float[Tensor, "R T C"], g: Float[Tensor, "R T E"], memory: Memory
    ) -> tuple[Float[Tensor, "R T C"], Float[Tensor, "R T S"]]:
        """Return h with the conditional input added, and the attention weights.

        Args:
            h: output of the layer's gated linear unit, before the residual (T5).
            g: embeddings of the previous target tokens.
            memory: of B sentences; the rows are grouped by sentence, H for each, so R = B * H.
        """
        d = (self.summary_map(h) + g) * self.scale
        # The H rows of a sentence see the same source: they attend like one row of H * T positions.
        c, weights = attend(d.view(len(memory.keys), -1, d.shape[-1]), memory)
        return (self.context_map(c.view_as(d)) + h) * self.scale, weights.view(*d.shape[:2], -1)
