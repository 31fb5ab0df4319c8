"""The convolutional block: convolution, gated linear unit, residual (§3.2)."""

import math

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from convs2s.model.description import receptive_field  # noqa: F401  # its place in 1.0
from convs2s.model.initialization import linear

SQRT_HALF = math.sqrt(0.5)


class GluConvolution(nn.Module):
    """Dropout, convolution to twice the channels, gated linear unit (§3.2).

    The kernel is stored as a linear map of a window: each row is an output channel; the columns are the
    window's positions from left to right, each with its input channels.
    """

    def __init__(self, inputs: int, outputs: int, kernel_width: int, dropout: float) -> None:
        super().__init__()
        self.kernel_width = kernel_width
        self.dropout = dropout
        self.window_map = linear(kernel_width * inputs, 2 * outputs, keep=1.0 - dropout, before_glu=True)

    def forward(self, x: Float[Tensor, "B N C"], left: int, right: int) -> Float[Tensor, "B M D"]:
        """Apply to every window of the sequence, zero-padded by `left` and `right` positions."""
        x = F.dropout(x, self.dropout, self.training)
        if self.kernel_width > 1:
            padded = F.pad(x, (0, 0, left, right)) if left or right else x
            count = padded.shape[1] - self.kernel_width + 1
            if count == 1:
                x = padded.flatten(1)[:, None]  # no copy, as search steps through a sentence
            else:
                x = torch.cat([padded[:, k : k + count] for k in range(self.kernel_width)], dim=2)
        return F.glu(self.window_map(x), dim=-1)


class Residual(nn.Module):
    """Add the block's input to its output, scaled by sqrt(0.5) (§3.4); a linear map adapts widths (T2)."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.map = linear(inputs, outputs) if inputs != outputs else None

    def forward(
        self, block_input: Float[Tensor, "... C"], output: Float[Tensor, "... D"]
    ) -> Float[Tensor, "... D"]:
        """Return (output + input) * sqrt(0.5)."""
        if self.map is not None:
            block_input = self.map(block_input)
        return (output + block_input) * SQRT_HALF


class EncoderBlock(nn.Module):
    """A block that sees both sides and keeps the sequence's length (§3.2)."""

    def __init__(self, inputs: int, outputs: int, kernel_width: int, dropout: float) -> None:
        super().__init__()
        self.convolution = GluConvolution(inputs, outputs, kernel_width, dropout)
        self.residual = Residual(inputs, outputs)

    def forward(
        self, x: Float[Tensor, "B S C"], padding: Bool[Tensor, "B S"] | None
    ) -> Float[Tensor, "B S D"]:
        """Transform a sequence; padded positions count as the zeros beyond its end (T8)."""
        side = self.convolution.kernel_width // 2
        real = x if padding is None else x.masked_fill(padding[:, :, None], 0.0)
        return self.residual(x, self.convolution(real, side, side))  # type: ignore[no-any-return]
