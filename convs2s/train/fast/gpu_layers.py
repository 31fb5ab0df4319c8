"""Layers with few operations: a GPU takes longer to launch a small operation than to run it.

They take their weights from `convs2s.train.fast.weights`; without those, as in validation, they behave like
the plain layers.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from convs2s.model.embedding import Embedding
from convs2s.model.glu_block import GluConvolution
from convs2s.train.fast.linear import Values, product_dtype


class GpuLinear(nn.Linear):
    """nn.Linear with weight norm, which takes its weight and bias from the update's shared values."""

    shared: Callable[[], Values] | None

    def forward(self, x: Float[Tensor, "*N C"]) -> Float[Tensor, "*N D"]:
        """Return x times the normalized weight, plus the bias."""
        if self.shared is None:
            return super().forward(x)
        values = self.shared()
        return F.linear(x.to(values["weight"].dtype), values["weight"], values["bias"])


class GpuEmbedding(Embedding):
    """Embedding, cast once for all layers that read it."""

    def forward(
        self, tokens: Int[Tensor, "B N"], padding: Bool[Tensor, "B N"] | None = None
    ) -> Float[Tensor, "B N E"]:
        """Embed sentences."""
        embedded = super().forward(tokens, padding)
        return embedded.to(product_dtype(embedded)) if self.training else embedded


class GpuGluConvolution(GluConvolution):
    """GluConvolution as a single cuDNN convolution, without a copy of the windows."""

    window_map: GpuLinear

    def forward(self, x: Float[Tensor, "B N C"], left: int, right: int) -> Float[Tensor, "B N D"]:
        """Apply to every position of the sequence, zero-padded by `left` and `right` positions."""
        if self.window_map.shared is None:
            return super().forward(x, left, right)
        values = self.window_map.shared()
        weight, bias = values["weight"], values["bias"]
        x = x.to(weight.dtype)
        if self.dropout:
            x, _ = torch.native_dropout(x, self.dropout, True)
        # An image of height 1, channels last: both views already have the layout that cuDNN wants.
        line = x.transpose(1, 2).unsqueeze(2)  # (B, C, 1, N)
        kernel = weight.view(len(weight), 1, self.kernel_width, -1).permute(0, 3, 1, 2)  # (2D, C, 1, K)
        # conv2d pads both sides alike; the surplus is cut off below.
        y = F.conv2d(line, kernel, bias, padding=(0, max(left, right)))
        y = y.squeeze(2).transpose(1, 2)
        first = max(left, right) - left
        return F.glu(y[:, first : first + x.shape[1]], dim=-1)
