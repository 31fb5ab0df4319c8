"""Garbage collection around what stays until a process ends."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def lasting() -> Iterator[None]:
    """Make objects that stay until the end: imports, a model.

    Python would look through them while they are made, and again whenever many others have been: a tenth of
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
