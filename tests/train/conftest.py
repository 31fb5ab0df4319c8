"""What tests of training share."""

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
    """Handle Ctrl-C as Python does; a shell that starts the tests in the background has them ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
