"""`auto` is bfloat16 exactly where hardware multiplies it; what is slow says so."""

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import pytest
import torch

from convs2s.model.precision import choose_precision

CPU = torch.device("cpu")
AVX2, ICE_LAKE = {"avx2": True}, {"avx2": True, "avx512_f": True, "avx512_vnni": True, "avx512_bf16": False}
ZEN4 = ICE_LAKE | {"avx512_bf16": True}
SAPPHIRE_RAPIDS = ZEN4 | {"amx_bf16": True}
GRAVITON2, GRAVITON3 = {"neon": True, "bf16": False}, {"neon": True, "bf16": True}


@pytest.mark.parametrize(
    ("machine", "features", "level", "onednn", "expected"),
    [
        ("x86_64", AVX2, "AVX2", False, "float32, as this processor has no bfloat16 products .AVX2."),
        # oneDNN says yes to any AVX-512, also without bfloat16 products.
        ("x86_64", ICE_LAKE, "AVX512", True, "float32, as this processor has no bfloat16 products .AVX512."),
        ("x86_64", ZEN4, "AVX512", True, "bfloat16, as this processor has AVX512-BF16"),
        ("x86_64", SAPPHIRE_RAPIDS, "AVX512", True, "bfloat16, as this processor has AMX"),
        # ATEN_CPU_CAPABILITY=avx2, then ONEDNN_MAX_CPU_ISA=AVX2
        ("x86_64", ZEN4, "AVX2", True, "float32, as .* no bfloat16 products that PyTorch may use"),
        ("x86_64", ZEN4, "AVX512", False, "float32, as .* no bfloat16 products that PyTorch may use"),
        ("aarch64", GRAVITON2, "DEFAULT", False, "float32, as this processor has no bfloat16 products"),
        ("aarch64", GRAVITON3, "SVE256", True, "bfloat16, as this processor has .* of Arm"),
    ],
)
def test_auto_asks_the_processor(
    machine: str,
    features: Mapping[str, Any],
    level: str,
    onednn: bool,
    expected: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is asked for is kept, but bfloat16 without hardware says that it is slow, and what to choose."""
    monkeypatch.setattr("platform.machine", lambda: machine)
    monkeypatch.setattr("torch.cpu.get_capabilities", lambda: features)
    monkeypatch.setattr("torch.backends.cpu.get_cpu_capability", lambda: level)
    monkeypatch.setattr("torch.backends.mkldnn.is_available", lambda: True)  # as everywhere
    monkeypatch.setattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", lambda: onednn, raising=False)
    auto, half = choose_precision("auto", CPU), choose_precision("bfloat16", CPU)
    assert re.match(f"products in {expected}", str(auto)), auto
    assert half.precision == "bfloat16"
    assert half.is_slow == (auto.precision == "float32")
    if half.is_slow:
        assert str(half).startswith("warning: products in bfloat16, about 20 times slower than float32, as")
    assert not choose_precision("float32", CPU).is_slow


def test_a_large_processor_plays_a_small_one() -> None:
    """With the variables of PyTorch and oneDNN, `auto` is float32, and sums of 8-bit products stay exact."""
    code = """
import torch
from convs2s.engine.decode.linear_maps import largest_input, packs_convolutions
from convs2s.model.precision import choose_precision
precision = choose_precision("auto", torch.device("cpu")).precision
print(precision, largest_input(), packs_convolutions())
"""
    limits = {"ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2"}
    command = [sys.executable, "-c", code]
    environment = {**os.environ, **limits}
    output = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert output.stdout.split() == ["float32", "63", "True"], output.stderr
