"""The convolution without windows in memory, by the library that PyTorch has for convolutions.

It saves memory and traffic. Whether it is faster depends on the library, cuDNN on a GPU: it is only measured.
"""

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from convs2s.model.glu_block import GluConvolution


class DirectConvolution(GluConvolution):
    """As GluConvolution, with the same weights: their layout is that of a channels-last kernel."""

    def forward(self, x: Float[Tensor, "B N C"], left: int, right: int) -> Float[Tensor, "B M D"]:
        """Apply to every window of the sequence, zero-padded by `left` and `right` positions."""
        if self.kernel_width == 1:
            return super().forward(x, left, right)
        x = F.dropout(x, self.dropout, self.training)
        if left != right:
            x = F.pad(x, (0, 0, left, right))
            left = 0
        weight = self.window_map.weight.unflatten(1, (self.kernel_width, -1)).transpose(1, 2)  # (2D, C, K)
        y = F.conv1d(x.transpose(1, 2), weight, self.window_map.bias, padding=left)
        return F.glu(y.transpose(1, 2), dim=-1)
