"""Shape annotations checked at run time: in each test the first calls of each function.

A check costs more than most products of such a size, and a training makes the same calls thousands of times.
All calls are checked with CHECK_ALL_SHAPES=1.
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

    jaxtyping passes two functions for each with shapes: one of its arguments, and one of its result as well.
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
    """Let jaxtyping pass over a function; one within another, which nobody can find, is checked further."""
    found: Any = sys.modules[module]
    for part in name.split("."):
        found = inspect.getattr_static(found, part, None)
    found = getattr(found, "fget", getattr(found, "__func__", found))
    if found is not None:
        found.__no_type_check__ = True
        silent.add(found)


def begin() -> None:
    """Check all again, as each test begins."""
    while silent:
        del silent.pop().__no_type_check__
    calls.clear()
