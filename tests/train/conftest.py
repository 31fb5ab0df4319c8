"""Shared fixtures of the tests of training."""

import signal
from collections.abc import Iterator

import pytest


@pytest.fixture
def in_foreground() -> Iterator[None]:
    """Use Python's handler for Ctrl-C, which tests started in a shell's background would ignore."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
