"""Shared fixtures of the tests of training."""

import signal
from collections.abc import Iterator

import pytest
import torch


@pytest.fixture(autouse=True, scope="package")
def _one_thread() -> None:
    """Tiny models train fastest on one thread, and so do tests that run at the same time."""
    torch.set_num_threads(1)


@pytest.fixture
def in_foreground() -> Iterator[None]:
    """Use Python's handler for Ctrl-C, which tests started in a shell's background would ignore."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
