"""Linear maps x W^T + b with fixed weights, stored as the CPU's matrix products read them fastest.

float32 and bfloat16 weights are packed once by oneDNN; `F.linear` would repack them for every product. 8-bit
weights are integers times a scale per output; inputs are rounded the same way at run time, with a scale per
row, so that a result does not depend on the other rows of the batch. Their sums are exact.
"""

import platform
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Float32, Int8
from torch import Tensor, nn

from convs2s.engine import decode_loops
from convs2s.engine.loops import as_array, run_loop


class ScaledProduct(NamedTuple):
    """A linear map's result, as the loops read it: numbers[i, j] * row_scales[i] * scales[j] + bias[j]."""

    numbers: Tensor  # (R, N): float32, bfloat16 or int32
    row_scales: Float32[Tensor, "R"]
    scales: Float32[np.ndarray, "N"]
    bias: Float32[np.ndarray, "N"]


class FloatMap:
    """A linear map in float32 or bfloat16.

    Args:
        weight: must not change afterwards.
        bias: or None.
        dtype: of the products.
    """

    def __init__(
        self, weight: Float[Tensor, "N K"], bias: Float[Tensor, "N"] | None, dtype: torch.dtype
    ) -> None:
        self.outputs, self.dtype, self.packed = len(weight), dtype, can_pack(dtype)
        self.weight = weight.to(dtype).contiguous()
        if self.packed:
            self.weight = torch.ops.mkldnn._reorder_linear_weight(self.weight, None)
        self.bias = None if bias is None else bias.to(dtype)
        self.ones, self.zeros = np.ones(len(weight), np.float32), np.zeros(len(weight), np.float32)

    def __call__(self, x: Float32[Tensor, "R K"]) -> Float32[Tensor, "R N"]:
        """Return x W^T + b."""
        return self._multiply(x).float()

    def product(self, x: Float32[Tensor, "R K"]) -> ScaledProduct:
        """Return x W^T + b as the loops read it."""
        return ScaledProduct(self._multiply(x), torch.ones(len(x)), self.ones, self.zeros)

    def _multiply(self, x: Float32[Tensor, "R K"]) -> Float[Tensor, "R N"]:
        x = x.to(self.dtype)
        if not self.packed:
            return F.linear(x, self.weight, self.bias)
        product: Tensor = torch.ops.mkldnn._linear_pointwise(x, self.weight, self.bias, "none", [], "")
        return product


class Int8Map:
    """A linear map with 8-bit weights; between the integer products, everything is float32.

    Args:
        weight: copied.
        bias: or None.
    """

    def __init__(self, weight: Float[Tensor, "N K"], bias: Float[Tensor, "N"] | None) -> None:
        self.outputs = len(weight)
        self.weight, scales = quantize(weight.float().contiguous())
        # Arrays, because loops take arrays: a tensor would have to be converted at every step.
        self.scales = as_array(scales)
        self.bias = np.zeros(len(weight), np.float32) if bias is None else as_array(bias.float())

    def __call__(self, x: Float32[Tensor, "R K"]) -> Float32[Tensor, "R N"]:
        """Return x W^T + b."""
        out = torch.empty(len(x), self.outputs)
        run_loop(decode_loops.scale, len(out), out.numel(), *self.product(x), out)
        return out

    def product(self, x: Float32[Tensor, "R K"]) -> ScaledProduct:
        """Return x W^T + b as the loops read it."""
        rows, row_scales = quantize(x)
        return ScaledProduct(torch._int_mm(rows, self.weight.t()), row_scales, self.scales, self.bias)


LinearMap = FloatMap | Int8Map


def fix_layer(layer: nn.Linear, precision: str) -> LinearMap:
    """Return a layer of a model, without weight norm, as a map with fixed weights."""
    return fix_weights(layer.weight, layer.bias, precision)


def fix_weights(weight: Float[Tensor, "N K"], bias: Float[Tensor, "N"] | None, precision: str) -> LinearMap:
    """Return a map with these weights, and products in float32, bfloat16 or int8."""
    if precision == "int8":
        return Int8Map(weight, bias)
    return FloatMap(weight, bias, float_type(precision))


def float_type(precision: str) -> torch.dtype:
    """Return the type of the numbers that stay floating-point: bfloat16 unless all are float32."""
    return torch.float32 if precision == "float32" else torch.bfloat16


def can_pack(dtype: torch.dtype) -> bool:
    """Return whether oneDNN packs weights of this type on this machine; measured on x86 only."""
    if platform.machine() not in ("x86_64", "AMD64") or not torch.backends.mkldnn.is_available():
        return False
    return dtype == torch.float32 or bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


def quantize(x: Float32[Tensor, "R K"]) -> tuple[Int8[Tensor, "R K"], Float32[Tensor, "R"]]:
    """Return rows as integers from -127 to 127, and the scale of each row."""
    rows, scales = torch.empty(x.shape, dtype=torch.int8), torch.empty(len(x))
    run_loop(decode_loops.quantize, len(x), x.numel(), x, rows, scales)
    return rows, scales


def check_precision(precision: str) -> None:
    """Check that this machine has fast products of 8-bit integers, if they are asked for.

    Raises:
        ValueError: if it does not.
    """
    fast = torch.cpu._is_vnni_supported() and torch.backends.mkldnn.is_available()
    if precision == "int8" and not fast:
        raise ValueError(
            "precision int8 needs a CPU with AVX512-VNNI, and a build of PyTorch with oneDNN; this machine "
            f"({torch.backends.cpu.get_cpu_capability()}) would be slower with it. Choose float32."
        )
