"""Linear maps x W^T + b with fixed weights, stored as the CPU's matrix products read them fastest.

Weights are packed once by oneDNN; `F.linear` would pack them for every product. 8-bit weights are integers
times a scale per output; inputs are rounded the same way at run time, with a scale per row, so that a result
does not depend on the other rows of the batch. Their sums are exact: without VNNI, processors add pairs of
products in 16 bits, so inputs are rounded to 7 bits there.
"""

import functools
import platform
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Float32, Int8, UInt8
from numpy.typing import NDArray
from torch import Tensor, nn

from convs2s.engine.decode import loops as decode_loops
from convs2s.engine.loops import as_array, as_tensor, run_on_arrays
from convs2s.model.precision import X86, Precision

LARGEST_WEIGHT = 127.0
LARGEST_INPUTS = (127, 63)  # magnitudes; the second where sums of pairs must fit 16 bits
TINY = 1e-30


Products = Callable[[UInt8[Tensor, "R K"]], Float32[Tensor, "R N"]]
"""Returns (rows - zero) W^T for packed 8-bit weights W, with sums of integers."""


class ScaledProduct(NamedTuple):
    """A linear map's result, as the loops read it: numbers[i, j] * row_scales[i] * scales[j] + bias[j]."""

    numbers: NDArray[Any]  # (R, N): float32, or bfloat16 as uint16
    row_scales: Float32[np.ndarray, "R"]
    scales: Float32[np.ndarray, "N"]
    bias: Float32[np.ndarray, "N"]


class FloatMap:
    """A linear map in float32 or bfloat16; its weight must not change afterwards.

    Args:
        packs: whether to pack the weight, if this machine can; a few products alone do not repay this.
    """

    def __init__(
        self, weight: Float[Tensor, "N K"], bias: Float[Tensor, "N"] | None, dtype: torch.dtype, packs: bool
    ) -> None:
        self.outputs = len(weight)
        self.dtype = dtype
        self.by_onednn = can_pack(dtype)
        self.weight = weight.to(dtype).contiguous()
        if packs and self.by_onednn:
            self.weight = torch.ops.mkldnn._reorder_linear_weight(self.weight, None)
        self.bias = None if bias is None else bias.to(dtype)
        self.ones = np.ones(len(weight), np.float32)
        self.zeros = np.zeros(len(weight), np.float32)

    def __call__(self, x: NDArray[Any]) -> Float32[np.ndarray, "R N"]:
        """Return x W^T + b; the rows x are float32, or bfloat16 as uint16."""
        return as_array(self._multiply(x).float())

    def product(self, x: NDArray[Any]) -> ScaledProduct:
        """Return x W^T + b as the loops read it."""
        return ScaledProduct(as_array(self._multiply(x)), unit_rows(len(x)), self.ones, self.zeros)

    def _multiply(self, x: NDArray[Any]) -> Float[Tensor, "R N"]:
        rows = as_tensor(x)
        if rows.dtype != self.dtype:
            rows = rows.to(self.dtype)
        if not self.by_onednn:
            return F.linear(rows, self.weight, self.bias)
        # The overload by its name: looking for it in each call takes microseconds.
        multiply = torch.ops.mkldnn._linear_pointwise.default
        product: Tensor = multiply(rows, self.weight, self.bias, "none", [], "")
        return product


class Int8Map:
    """A linear map with 8-bit weights and inputs of 8 or 7 bits; between products, everything is float32."""

    def __init__(self, weight: Float[Tensor, "N K"], bias: Float[Tensor, "N"] | None) -> None:
        if not can_pack(torch.float32):
            raise ValueError(
                f"precision int8 is for x86 processors, found {platform.machine()}. Choose auto or float32."
            )
        self.outputs = len(weight)
        self.largest = largest_input()
        weight = weight.float().contiguous()  # packing ignores strides
        scales = weight.abs().amax(dim=1) / LARGEST_WEIGHT
        rounded = (weight / scales.clamp(min=TINY)[:, None]).round().to(torch.int8)
        self.multiply = pack(rounded, self.largest + 1)
        self.scales = as_array(scales)
        self.bias = np.zeros(len(weight), np.float32) if bias is None else as_array(bias.float())

    def __call__(self, x: Float32[np.ndarray, "R K"]) -> Float32[np.ndarray, "R N"]:
        """Return x W^T + b."""
        out = np.empty((len(x), self.outputs), np.float32)
        run_on_arrays(decode_loops.scale, len(out), out.size, *self.product(x), out)
        return out

    def product(self, x: Float32[np.ndarray, "R K"]) -> ScaledProduct:
        """Return x W^T + b as the loops read it."""
        rows, row_scales = quantize(x, self.largest)
        sums = self.multiply(torch.from_numpy(rows))
        return ScaledProduct(as_array(sums), row_scales, self.scales, self.bias)


LinearMap = FloatMap | Int8Map


def fix_layer(layer: nn.Linear, precision: Precision | None) -> LinearMap:
    """Return a layer of a model, without weight norm, as a map with fixed weights."""
    return fix_weights(layer.weight, layer.bias, precision)


def fix_weights(
    weight: Float[Tensor, "N K"], bias: Float[Tensor, "N"] | None, precision: Precision | None
) -> LinearMap:
    """Return a map with these weights, and products in this precision; None: float32, for a few products."""
    if precision == "int8":
        return Int8Map(weight, bias)
    return FloatMap(weight, bias, float_type(precision), packs=precision is not None)


def float_type(precision: Precision | None) -> torch.dtype:
    """Return the type of the numbers that stay floating-point: bfloat16 unless all are float32."""
    return torch.bfloat16 if precision in ("bfloat16", "int8") else torch.float32


def can_pack(dtype: torch.dtype) -> bool:
    """Return whether oneDNN packs weights of this type on this machine; measured on x86 only."""
    if platform.machine() not in X86 or not torch.backends.mkldnn.is_available():
        return False
    return dtype == torch.float32 or bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


def quantize(
    x: Float32[np.ndarray, "R K"], largest: int
) -> tuple[UInt8[np.ndarray, "R K"], Float32[np.ndarray, "R"]]:
    """Return rows as integers up to `largest` in magnitude, with largest + 1 added, and each row's scale."""
    rows = np.empty(x.shape, np.uint8)
    scales = np.empty(len(x), np.float32)
    run_on_arrays(decode_loops.quantize, len(x), x.size, x, np.float32(largest), rows, scales)
    return rows, scales


def pack(weight: Int8[Tensor, "N K"], zero: int) -> Products:
    """Pack a weight in the way that is fastest here."""
    return pack_convolution(weight, zero) if packs_convolutions() else pack_linear(weight, zero)


def pack_linear(weight: Int8[Tensor, "N K"], zero: int) -> Products:
    """Pack a weight as that of a linear map."""
    packed = torch.ops.onednn.qlinear_prepack(weight, None)
    ones, zeros = unit_scales(len(weight))

    def multiply(rows: UInt8[Tensor, "R K"]) -> Float32[Tensor, "R N"]:
        product: Tensor = torch.ops.onednn.qlinear_pointwise(
            rows, 1.0, zero, packed, ones, zeros, None, 1.0, 0, torch.float32, "none", [], ""
        )
        return product

    return multiply


def pack_convolution(weight: Int8[Tensor, "N K"], zero: int) -> Products:
    """Pack a weight as that of a convolution over a sequence of rows, with kernels of width 1."""
    outputs, inputs = weight.shape
    ones, zeros = unit_scales(outputs)
    geometry = [1, 1], [0, 0], [1, 1], 1  # stride, padding, dilation, groups
    packed = torch.ops.onednn.qconv_prepack(
        weight.view(outputs, inputs, 1, 1), ones, 1.0, zero, *geometry, [1, inputs, 1, 1]
    )

    def multiply(rows: UInt8[Tensor, "R K"]) -> Float32[Tensor, "R N"]:
        sequence = rows.view(1, 1, len(rows), inputs).permute(0, 3, 1, 2)
        product: Tensor = torch.ops.onednn.qconv_pointwise(
            sequence, 1.0, zero, packed, ones, zeros, None, *geometry, 1.0, 0, torch.float32, "none", [], ""
        )
        return product.permute(0, 2, 3, 1).view(len(rows), outputs)

    return multiply


@functools.cache
def unit_rows(rows: int) -> Float32[np.ndarray, "R"]:
    """Return the row scales of a product that is not scaled."""
    return np.ones(rows, np.float32)


@functools.cache
def unit_scales(outputs: int) -> tuple[Tensor, Tensor]:
    """Return the weights' scales and zero points for products that are left unscaled."""
    return torch.ones(outputs), torch.zeros(outputs, dtype=torch.int64)


@functools.cache
def largest_input() -> int:
    """Return the largest magnitude of inputs whose products with 8-bit weights are summed exactly here.

    Tries the largest factors, because which instructions are used depends on the processor, on oneDNN and on
    its environment variables.
    """
    weight = torch.full((64, 64), int(LARGEST_WEIGHT), dtype=torch.int8)
    for largest in LARGEST_INPUTS:
        rows = torch.full((32, 64), 2 * largest + 1, dtype=torch.uint8)
        if bool((pack_linear(weight, largest + 1)(rows) == 64 * largest * LARGEST_WEIGHT).all()):
            break
    return largest


@functools.cache
def packs_convolutions() -> bool:
    """Return whether oneDNN packs 8-bit weights of linear maps in each product, those of convolutions once.

    So it does on processors with AVX2, but neither VNNI nor AVX-512.
    """
    return largest_input() < LARGEST_INPUTS[0] and torch.backends.cpu.get_cpu_capability() == "AVX2"
