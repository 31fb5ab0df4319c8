"""PyTorch in a process that runs tests: one thread, and the same seed for each test."""

import os

import pytest
import torch

torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))


@pytest.fixture(autouse=True)
def same_seed() -> None:
    """Seed PyTorch, so that a test that fails with random weights fails again, alone or in any order."""
    torch.manual_seed(1)
