"""Precision of matrix products: the fastest that a device computes well (T38).

Half of a float32's bits make products two to four times as fast where the hardware multiplies bfloat16, and
some twenty times slower where software has to imitate it.
"""

import platform
from typing import Literal, NamedTuple

import torch

Precision = Literal["float32", "bfloat16", "int8"]
Wanted = Literal["auto", "float32", "bfloat16", "int8"]

X86 = ("x86_64", "AMD64")
BFLOAT16_INSTRUCTIONS = {
    "amx_bf16": "AMX",
    "avx512_bf16": "AVX512-BF16",
    "bf16": "the bfloat16 products of Arm v8.6",
}
"""Names for people, by PyTorch's name; the first that a processor has is the one used."""
AMPERE = (8, 0)  # compute capability of the first GPUs with bfloat16


class PrecisionChoice(NamedTuple):
    """A precision of products.

    Attributes:
        reason: a clause for the log.
        is_slow: slower than float32 on this device.
    """

    precision: Precision
    reason: str
    is_slow: bool = False

    def __str__(self) -> str:
        return f"{'warning: ' if self.is_slow else ''}products in {self.precision}, {self.reason}."


def choose_precision(wanted: Wanted, device: torch.device) -> PrecisionChoice:
    """Return the precision of products on a device; `auto` is bfloat16 where it is faster than float32."""
    is_fast, hardware = find_bfloat16(device)
    if wanted == "auto":
        return PrecisionChoice("bfloat16" if is_fast else "float32", f"as {hardware}")
    if wanted == "bfloat16" and not is_fast:
        much = "about 20 times " if device.type == "cpu" else ""
        return PrecisionChoice(
            wanted, f"{much}slower than float32, as {hardware}: choose auto or float32", is_slow=True
        )
    if wanted == "int8" and device.type == "cpu" and torch.cuda.is_available():
        return PrecisionChoice(wanted, "as set, and thus on the CPU: for the GPU, choose auto or float32")
    return PrecisionChoice(wanted, "as set")


def find_bfloat16(device: torch.device) -> tuple[bool, str]:
    """Return whether a device multiplies bfloat16 faster than float32, and a clause that says what it has."""
    if device.type == "cuda":
        name, capability = torch.cuda.get_device_name(device), torch.cuda.get_device_capability(device)
        has = "has" if capability >= AMPERE else "has no"
        return capability >= AMPERE, f"{name} {has} bfloat16 products"
    if device.type != "cpu":
        return False, f"nothing is known of bfloat16 on {device.type}"
    features = torch.cpu.get_capabilities()
    present = [name for key, name in BFLOAT16_INSTRUCTIONS.items() if features.get(key)]
    # ATEN_CPU_CAPABILITY and ONEDNN_MAX_CPU_ISA can forbid what the processor has.
    level = torch.backends.cpu.get_cpu_capability()
    is_allowed = platform.machine() not in X86 or level not in ("DEFAULT", "NO AVX", "AVX2")
    is_built = torch.backends.mkldnn.is_available() and torch.ops.mkldnn._is_mkldnn_bf16_supported()
    if present and is_allowed and is_built:
        return True, f"this processor has {present[0]}"
    forbidden = f" that PyTorch may use ({level})" if present else f" ({level})"
    return False, f"this processor has no bfloat16 products{forbidden}"
