"""Tiny models train fastest on one thread, and so do tests that run at the same time."""

import pytest
import torch


@pytest.fixture(autouse=True, scope="package")
def _one_thread() -> None:
    torch.set_num_threads(1)
