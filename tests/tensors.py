"""PyTorch in a process that runs tests: one thread, and the same seed for each test."""

import os

import pytest
import torch

torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.default_generator.manual_seed(1)  # the other one notes the stack, in case that CUDA starts
