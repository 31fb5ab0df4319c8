"""Layers of a training on a GPU, in fewer operations than the plain ones (§3.2, §3.3).

Each operation costs the host some time, and a fast GPU waits for the host. These layers compute what
`convs2s.model` does, with PyTorch's operations and the same weights under the same names;
`convs2s.train.choose_layers` compares the two when a training is built.
"""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from convs2s.model.decoder import Decoder, DecoderState
from convs2s.model.glu_block import GluConvolution
from convs2s.model.multistep_attention import Memory, MultistepAttention


class GpuGluConvolution(GluConvolution):
    """GluConvolution whose windows overlap in memory until one operation copies them.

    The gradients of an input's windows are added up by one operation, too. The plain layer takes two for each
    position of the kernel.
    """

    def forward(self, x: Float[Tensor, "B N C"], left: int, right: int) -> Float[Tensor, "B M D"]:
        """Apply to every window of the sequence, zero-padded by `left` and `right` positions."""
        if not self.training or self.kernel_width == 1:
            return super().forward(x, left, right)
        x = F.dropout(x, self.dropout, self.training)
        padded = F.pad(x.to(product_dtype(x)), (0, 0, left, right))
        windows = padded.unfold(1, self.kernel_width, 1).transpose(2, 3)  # (B, M, K, C)
        return F.glu(self.window_map(windows.flatten(2).contiguous()), dim=-1)


@dataclass(frozen=True)
class PreparedMemory(Memory):
    """A memory with what all layers of the decoder would compute again.

    Keys and values have the dtype of products.

    Attributes:
        mask: what to add to scores: 0, or minus infinity at padding.
        scale: m * sqrt(1/m), for m tokens.
    """

    mask: Float[Tensor, "B 1 S"]
    scale: Float[Tensor, "B 1 1"]


def prepare(memory: Memory) -> PreparedMemory:
    """Compute what all layers of the decoder share."""
    assert memory.padding is not None, "a training always has a mask"
    keys, values = (x.to(product_dtype(x)) for x in (memory.keys, memory.values))
    mask = torch.zeros_like(memory.padding, dtype=keys.dtype).masked_fill_(memory.padding, -math.inf)
    scale = memory.lengths.sqrt()[:, None, None]
    return PreparedMemory(keys, values, memory.padding, memory.lengths, mask[:, None], scale)


def product_dtype(x: Tensor) -> torch.dtype:
    """Return the dtype of products with x: autocast's, if that is on (T38)."""
    kind = x.device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else x.dtype


class GpuDecoder(Decoder):
    """Decoder that prepares the memory once for all layers."""

    def forward(
        self, g: Float[Tensor, "R T E"], memory: Memory, state: DecoderState | None = None
    ) -> tuple[Float[Tensor, "R T F"], list[Float[Tensor, "R T S"]], DecoderState | None]:
        """As Decoder.forward."""
        return super().forward(g, prepare(memory) if self.training else memory, state)


class GpuAttention(MultistepAttention):
    """MultistepAttention to a prepared memory.

    The weights are scaled, which are S numbers for each target position, rather than the E of their sums; in
    float32, as the sums of the plain layer are (T38).
    """

    def forward(
        self, h: Float[Tensor, "R T C"], g: Float[Tensor, "R T E"], memory: Memory
    ) -> tuple[Float[Tensor, "R T C"], Float[Tensor, "R T S"]]:
        """As MultistepAttention.forward; in training, with one row for each sentence."""
        if not self.training:
            return super().forward(h, g, memory)
        assert isinstance(memory, PreparedMemory)
        d = (self.summary_map(h) + g) * self.scale
        scores = torch.baddbmm(memory.mask, d.to(memory.keys.dtype), memory.keys.transpose(1, 2))  # (B, T, S)
        weights = torch.softmax(scores, dim=-1, dtype=torch.float32)
        c = (weights * memory.scale).to(memory.values.dtype) @ memory.values  # (B, T, E)
        return (self.context_map(c) + h) * self.scale, weights
