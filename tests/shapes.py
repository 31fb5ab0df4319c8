"""Check shape annotations at run time, in the first calls of each function in each test.

At test sizes a check costs more than most matrix products, and training makes the same calls thousands of
times: tests of whole trainings take a tenth less time, others hardly less. CHECK_ALL_SHAPES=1 checks all.

This sets `__no_type_check__` on a function, by which jaxtyping skips it. If jaxtyping no longer reads it, all
calls are checked.
"""

import functools
import inspect
import os
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

from beartype import beartype

CALLS = 20
"""Checked calls per function and test: enough for a translation, or for updates to an epoch's last batch."""

calls: Counter[Any] = Counter()
silent: set[Any] = set()


def checked(function: Callable[..., Any]) -> Callable[..., Any]:
    """Check annotations with beartype, and count the calls.

    For each function with shapes, jaxtyping passes two: one checks the arguments, the other also the result.
    """
    check = beartype(function)

    @functools.wraps(function)
    def counted(*arguments: Any, **named: Any) -> Any:
        calls[check] += 1
        if calls[check] == CALLS and "CHECK_ALL_SHAPES" not in os.environ:
            silence(function.__module__, function.__qualname__)
        return check(*arguments, **named)

    return counted


def silence(module: str, name: str) -> None:
    """Make jaxtyping skip a function; nested functions cannot be looked up, so they are still checked."""
    found: Any = sys.modules[module]
    for part in name.split("."):
        found = inspect.getattr_static(found, part, None)
    found = getattr(found, "fget", getattr(found, "__func__", found))
    if found is not None:
        found.__no_type_check__ = True
        silent.add(found)


def begin() -> None:
    """Check all functions again, at the start of each test."""
    while silent:
        del silent.pop().__no_type_check__
    calls.clear()
