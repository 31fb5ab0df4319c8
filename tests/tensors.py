"""What a process that runs tests does with PyTorch: computes on one thread, and seeds each test."""

import os

import pytest
import torch

torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))


@pytest.fixture(autouse=True)
def _seed() -> None:
    """Seed the CPU, and GPUs once they are in use: before, torch.manual_seed formats a traceback for each."""
    torch.default_generator.manual_seed(1)
    if torch.cuda.is_initialized():
        torch.cuda.manual_seed_all(1)
