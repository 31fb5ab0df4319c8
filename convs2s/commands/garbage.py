"""Garbage collection while long-lived objects are created."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def lasting() -> Iterator[None]:
    """Create objects that live until the process exits: imports, a model.

    Python would scan them while they are created, and again whenever many other objects have been: a tenth of
    a second each time for PyTorch's alone.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if enabled:
            gc.enable()
