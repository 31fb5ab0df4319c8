"""Linear maps whose weights are packed once for the CPU's matrix products."""

import platform
from collections.abc import Callable

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn


def can_pack(weight: Tensor) -> bool:
    """Return whether oneDNN can multiply weights of this kind on this machine; measured on x86 only."""
    if weight.device.type != "cpu" or platform.machine() not in ("x86_64", "AMD64"):
        return False
    if not torch.backends.mkldnn.is_available():
        return False
    if weight.dtype == torch.bfloat16:
        return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
    return weight.dtype == torch.float32


class FixedLinear(nn.Module):
    """x W^T + b for inference.

    Attributes:
        outputs: N.
        dtype: of x.
    """

    def __init__(self, outputs: int, dtype: torch.dtype) -> None:
        super().__init__()
        self.outputs, self.dtype = outputs, dtype


MakeLinear = Callable[[Tensor, Tensor | None], FixedLinear]
"""Makes a linear map from a weight (N, K), which must not change afterwards, and a bias (N) or None."""


class PackedLinear(FixedLinear):
    """x W^T + b for inference, faster than `F.linear` on a CPU, which repacks W for every product.

    The bias is also added while the product is still in cache. PyTorch's compiler uses the same operator.

    Args:
        weight: (N, K); copied.
        bias: (N), or None.

    Raises:
        RuntimeError: if these weights cannot be packed; check with `can_pack` first.
    """

    def __init__(self, weight: Float[Tensor, "N K"], bias: Float[Tensor, "N"] | None) -> None:
        super().__init__(len(weight), weight.dtype)
        self.weight = torch.ops.mkldnn._reorder_linear_weight(weight.detach().contiguous(), None)
        self.bias = None if bias is None else bias.detach()

    def forward(self, x: Float[Tensor, "*B K"]) -> Float[Tensor, "*B N"]:
        """Return x W^T + b."""
        product: Tensor = torch.ops.mkldnn._linear_pointwise(x, self.weight, self.bias, "none", [], "")
        return product


class PlainLinear(FixedLinear):
    """The same with `F.linear`, for weights that cannot be packed."""

    def __init__(self, weight: Float[Tensor, "N K"], bias: Float[Tensor, "N"] | None) -> None:
        super().__init__(len(weight), weight.dtype)
        self.weight, self.bias = weight.detach(), None if bias is None else bias.detach()

    def forward(self, x: Float[Tensor, "*B K"]) -> Float[Tensor, "*B N"]:
        """Return x W^T + b."""
        return F.linear(x, self.weight, self.bias)


def fixed_linear(weight: Float[Tensor, "N K"], bias: Float[Tensor, "N"] | None) -> FixedLinear:
    """Return the fastest linear map with these weights, which must not change afterwards."""
    return PackedLinear(weight, bias) if can_pack(weight) else PlainLinear(weight, bias)


def replace_linear_maps(model: nn.Module, make: MakeLinear) -> None:
    """Replace, in place, the linear maps inside a model by maps that `make` returns for their weights."""
    for module in list(model.modules()):
        for name, child in list(module.named_children()):
            if isinstance(child, nn.Linear):
                setattr(module, name, make(child.weight, child.bias))
