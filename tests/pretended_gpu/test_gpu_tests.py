"""The tests that need a GPU pass: on the GPU of this machine, or on two that are pretended."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parent.parent.parent
GPU_TESTS = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "tests").rglob("test_on_gpu.py"))


def run_gpu_tests(path: str, pretend: bool) -> None:
    """Run a file's tests in a process of their own, as PyTorch is changed in all of it.

    A training on two pretended GPUs takes half a minute, so it is in one precision.
    """
    plugin = ["-p", "tests.pretended_gpu.plugin", "-k", "not (two_gpus and bfloat16)"] if pretend else []
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *plugin, "-m", "gpu", path]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    if pretend:
        environment.pop("CUDA_VISIBLE_DEVICES", None)
    tests = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert tests.returncode == 0, tests.stdout + tests.stderr
    assert not pretend or "skipped" not in tests.stdout


@pytest.mark.timeout(600)  # many tests in one
@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_pretended_gpu_is_strict() -> None:
    """Else passing tests would not mean much."""
    run_gpu_tests("tests/pretended_gpu/test_device.py", pretend=True)


@pytest.mark.slow
@pytest.mark.parametrize("path", GPU_TESTS)
def test_the_gpu_tests_of_each_file_pass(path: str) -> None:
    """Most machines of developers and CI have no GPU; what runs only on one would rot unseen."""
    run_gpu_tests(path, pretend=not torch.cuda.is_available())
