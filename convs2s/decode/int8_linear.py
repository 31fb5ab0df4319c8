"""Linear maps with 8-bit weights: the fastest products on CPUs with AVX512-VNNI, AVX-VNNI or AMX.

Weights are integers times a scale per output; inputs are rounded the same way at run time, with a scale per
row, so that a result does not depend on the other rows of the batch. Sums are exact; the rest is float32.
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Float32, Int8
from numpy.typing import NDArray
from torch import Tensor

from convs2s.decode.packed_linear import FixedLinear
from convs2s.engine import decode_loops
from convs2s.engine.loops import as_array, run_loop


@dataclass(frozen=True)
class Product:
    """A product of rows and weights: numbers[i, j] * row_scales[i] * scales[j] + bias[j]."""

    numbers: Tensor  # (R, N): float32, bfloat16 or int32
    row_scales: Float32[Tensor, "R"]
    scales: Float32[np.ndarray, "N"]
    bias: Float32[np.ndarray, "N"]

    @property
    def parts(self) -> tuple[Tensor, Tensor, NDArray[np.float32], NDArray[np.float32]]:
        """The arguments of the compiled loops."""
        return self.numbers, self.row_scales, self.scales, self.bias

    def result(self) -> Float32[Tensor, "R N"]:
        """Return the product as float32."""
        out = torch.empty(self.numbers.shape)
        run_loop(decode_loops.scaled, len(out), out.numel(), *self.parts, out)
        return out


class Int8Linear(FixedLinear):
    """x W^T + b for inference, with products of 8-bit integers.

    Args:
        weight: (N, K); copied.
        bias: (N), or None.
    """

    def __init__(self, weight: Float[Tensor, "N K"], bias: Float[Tensor, "N"] | None) -> None:
        super().__init__(len(weight), torch.float32)
        self.weight, scales = quantized(weight.detach().float().contiguous())
        # Arrays, because loops take arrays: a tensor would have to be converted at every step.
        self.scales = as_array(scales)
        self.bias = np.zeros(len(weight), np.float32) if bias is None else as_array(bias.float())

    def product(self, x: Float32[Tensor, "R K"]) -> Product:
        """Return x W^T + b before scaling."""
        rows, row_scales = quantized(x)
        return Product(torch._int_mm(rows, self.weight.t()), row_scales, self.scales, self.bias)

    def forward(self, x: Float[Tensor, "*B K"]) -> Float[Tensor, "*B N"]:
        """Return x W^T + b."""
        rows = x.flatten(0, -2).float().contiguous()
        return self.product(rows).result().view(*x.shape[:-1], -1)


def quantized(x: Float32[Tensor, "R K"]) -> tuple[Int8[Tensor, "R K"], Float32[Tensor, "R"]]:
    """Return rows as integers from -127 to 127, and the scale of each row."""
    rows, scales = torch.empty(x.shape, dtype=torch.int8), torch.empty(len(x))
    run_loop(decode_loops.quantize, len(x), x.numel(), x, rows, scales)
    return rows, scales


def check_int8(device: torch.device) -> None:
    """Check that this machine has fast products of 8-bit integers.

    Raises:
        ValueError: if it does not.
    """
    if device.type != "cpu":
        raise ValueError(
            f"precision int8 is for CPUs, but the device is {device}. Choose bfloat16, or --device cpu."
        )
    if not (torch.cpu._is_vnni_supported() and torch.backends.mkldnn.is_available()):
        raise ValueError(
            "precision int8 needs a CPU with AVX512-VNNI, and a build of PyTorch with oneDNN; this machine "
            f"({torch.backends.cpu.get_cpu_capability()}) would be slower with it. Choose float32."
        )
