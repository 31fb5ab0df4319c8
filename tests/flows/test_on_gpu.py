"""Tests of leases that need GPUs."""

import subprocess
import sys
import threading
from collections.abc import Sequence

import pytest
import torch

from pipelines.flows.dvc_stage import environment
from pipelines.flows.resources import Leases

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs"),
]
STAGE = """
import os, torch
from convs2s.train.distributed import choose_device
device = choose_device(0, 1)
torch.ones(3, device=device).sum().item()
print(os.environ["CUDA_VISIBLE_DEVICES"], torch.cuda.device_count(), device)
"""


def run_stage(gpus: Sequence[str]) -> str:
    """Run what a stage with these GPUs does first; return names and number of its GPUs, and its device."""
    command = [sys.executable, "-c", STAGE]
    return subprocess.run(command, env=environment(gpus), capture_output=True, text=True, check=True).stdout


def test_a_stage_uses_the_gpus_that_it_leased() -> None:
    """Two at a time have one each, which is the first that they see; one without a GPU sees none."""
    leases, stop = Leases(["0", "1"], 1), threading.Event()
    with leases.lease(1, stop, print) as first, leases.lease(1, stop, print) as second:
        assert [run_stage(first), run_stage(second)] == ["0 1 cuda:0\n", "1 1 cuda:0\n"]
    with leases.lease(2, stop, print) as both:
        assert run_stage(both) == f"{both[0]},{both[1]} 2 cuda:0\n"
    with leases.lease(0, stop, print) as none:
        assert run_stage(none) == " 0 cpu\n"
