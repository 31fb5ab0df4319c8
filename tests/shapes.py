"""Shape annotations checked at run time: the first calls of each function in each test.

A check costs more than most matrix products of test size, and a training repeats the same calls thousands of
times. CHECK_ALL_SHAPES=1 checks all calls.
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
"""Of a function in a test: those of several updates, with the last batch of an epoch, or of a translation."""

calls: Counter[Any] = Counter()
silent: set[Any] = set()


def checked(function: Callable[..., Any]) -> Callable[..., Any]:
    """Check annotations as beartype does, and count.

    jaxtyping passes two functions per function with shapes: for its arguments, and for the result as well.
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
    """Disable jaxtyping for a function; nested functions, which cannot be found, are still checked."""
    found: Any = sys.modules[module]
    for part in name.split("."):
        found = inspect.getattr_static(found, part, None)
    found = getattr(found, "fget", getattr(found, "__func__", found))
    if found is not None:
        found.__no_type_check__ = True
        silent.add(found)


def begin() -> None:
    """Enable all checks again, at the beginning of a test."""
    while silent:
        del silent.pop().__no_type_check__
    calls.clear()
