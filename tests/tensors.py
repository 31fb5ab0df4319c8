"""What a process that runs tests does with PyTorch: computes on one thread, and seeds each test."""

import os

import pytest
import torch

from convs2s.train.random_numbers import seed_generators

torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))


@pytest.fixture(autouse=True)
def _seed() -> None:
    seed_generators(1)
