"""The encoder: source embeddings -> keys and values of the attention (§3.2, §3.3)."""

from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from convs2s.config.model import ModelParams
from convs2s.model.glu_block import SQRT_HALF, EncoderBlock
from convs2s.model.initialization import linear


class Encoder(nn.Module):
    """A stack of convolutional blocks between two linear maps (§3.2).

    Args:
        dropout: probability of dropping, on the input of every block (§4.2).
    """

    def __init__(self, params: ModelParams, dropout: float) -> None:
        super().__init__()
        size, widths = params.embedding_size, params.encoder_widths
        self.input_map = linear(size, widths[0], keep=1.0 - dropout)
        inputs = [widths[0], *widths[:-1]]
        self.blocks = nn.ModuleList(
            EncoderBlock(c, d, k, dropout)
            for c, d, k in zip(inputs, widths, params.encoder_kernels, strict=True)
        )
        self.output_map = linear(widths[-1], size)
        # 1/(2A): each of A attentions feeds back twice, by dot product and weighted sum (T6).
        self.gradient_scale = 1.0 / (2 * sum(params.attention))
        # In the paper, but not in PyTorch fairseq, the embeddings' gradient is not scaled (§3.4).
        self.spare_embeddings = params.encoder_grad_scale == "paper"
        self.scale = SQRT_HALF if params.extra_scaling else 1.0  # of z + e (T4)

    def forward(
        self, e: Float[Tensor, "B S E"], padding: Bool[Tensor, "B S"] | None
    ) -> tuple[Float[Tensor, "B S E"], Float[Tensor, "B S E"]]:
        """Return the keys z and the values z + e; keys are zero at padding."""
        # The gradient is scaled at the top and, to spare the embeddings, scaled back below the first
        # map: backward is linear, so only the weights in between see the scale.
        x = scale_gradient(e, 1.0 / self.gradient_scale) if self.spare_embeddings else e
        x = self.input_map(x)
        for block in self.blocks:
            x = block(x, padding)
        z = self.output_map(x)
        if padding is not None:
            z = z.masked_fill(padding[:, :, None], 0.0)
        z = scale_gradient(z, self.gradient_scale)
        return z, (z + e) * self.scale


class _ScaleGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, scale: float) -> Tensor:
        ctx.scale = scale
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return gradients[0] * ctx.scale, None


def scale_gradient(x: Tensor, scale: float) -> Tensor:
    """Return x unchanged; its gradient is multiplied by `scale` on the way back."""
    result: Tensor = _ScaleGradient.apply(x, scale)  # type: ignore[no-untyped-call]
    return result
