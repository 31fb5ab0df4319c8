"""Weight-normalized linear maps: weight norm and cast in one pass, and matrix products of few shapes (§4.2).

oneDNN compiles code for each new shape of a product. The number of rows is rounded up to a multiple of ROWS,
so that a training has few shapes; the added rows are zeros, and change neither the result nor the gradients.
A multiple of 128 would give even fewer shapes, but costs more in larger products than it saves.
"""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from convs2s.engine import train_loops
from convs2s.engine.loops import run_loop

Values = dict[str, Tensor]
"""The tensors that a layer's forward pass reads: `weight`, and on a GPU also `bias`."""

ROWS = 32
G, V = (f"parametrizations.weight.original{i}" for i in (0, 1))  # PyTorch's names


def product_dtype(x: Tensor) -> torch.dtype:
    """Return the dtype of products with x: autocast's, if that is on (T38)."""
    device = x.device.type
    return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else x.dtype


def rounded(count: int, multiple: int) -> int:
    """Return count, rounded up to a multiple."""
    return -(-count // multiple) * multiple


def empty_rows(count: int, columns: int, dtype: torch.dtype) -> Float[Tensor, "R C"]:
    """Return a matrix with `count` uninitialized rows, rounded up with rows of zeros."""
    matrix = torch.empty(rounded(count, ROWS), columns, dtype=dtype)
    matrix[count:].zero_()
    return matrix


def round_rows(x: Float[Tensor, "*N C"]) -> Float[Tensor, "R C"]:
    """Return the rows of x, rounded up with rows of zeros."""
    rows = x.flatten(0, -2)
    if len(rows) % ROWS == 0:
        return rows.contiguous()
    matrix = empty_rows(len(rows), rows.shape[1], rows.dtype)
    matrix[: len(rows)] = rows
    return matrix


class FastLinear(nn.Linear):
    """nn.Linear with weight norm, faster in training."""

    multiple: int
    """The weight is padded with rows of zeros to a multiple of this number."""
    shared: Callable[[], Values] | None
    """Returns the weight of the current update; None outside of updates (`convs2s.train.fast.weights`)."""

    def forward(self, x: Float[Tensor, "*N C"]) -> Float[Tensor, "*N D"]:
        """Return x times the normalized weight, plus the bias."""
        if not self.training:
            return super().forward(x)
        weight = self.normalized(product_dtype(x))
        return _Linear.apply(x.to(weight.dtype), weight, self.bias)  # type: ignore[no-any-return, no-untyped-call]

    def normalized(self, dtype: torch.dtype) -> Float[Tensor, "R C"]:
        """Return the weight of the current update; outside of updates, compute it."""
        if self.shared is not None:
            return self.shared()["weight"]
        return normalized_weight(self, dtype, self.multiple)


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        rows = round_rows(x)
        ctx.save_for_backward(rows, weight)
        ctx.shape = x.shape
        y = F.linear(rows, weight, bias.to(rows.dtype))
        return y[: x.shape[:-1].numel()].view(*x.shape[:-1], len(weight))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        rows, weight = ctx.saved_tensors
        gy = round_rows(gradients[0])
        gx = (gy @ weight)[: ctx.shape[:-1].numel()].view(ctx.shape)
        return gx, gy.t() @ rows, gy.sum(dim=0, dtype=torch.float32)


def normalized_weight(layer: nn.Module, dtype: torch.dtype, multiple: int) -> Float[Tensor, "D C"]:
    """Return a layer's weight g v / ||v|| in this dtype, padded with rows of zeros to a multiple."""
    v, g = layer.get_parameter(V), layer.get_parameter(G)
    return _Normalized.apply(v, g, dtype, multiple)  # type: ignore[no-any-return, no-untyped-call]


class _Normalized(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, v: Tensor, g: Tensor, dtype: torch.dtype, multiple: int) -> Tensor:
        weight = v.new_empty(rounded(len(v), multiple), v.shape[1], dtype=dtype)
        weight[len(v) :].zero_()
        norms = v.new_empty(len(v))
        run_loop(train_loops.normalize, len(v), v.numel(), v, g.flatten(), weight, norms)
        ctx.save_for_backward(v, g, norms)
        return weight

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None, None]:
        v, g, norms = ctx.saved_tensors
        gv, gg = torch.empty_like(v), torch.empty_like(g)
        above = gradients[0].contiguous()
        run_loop(
            train_loops.normalize_backward, len(v), v.numel(), above, v, g.flatten(), norms, gv, gg.flatten()
        )
        return gv, gg, None, None
