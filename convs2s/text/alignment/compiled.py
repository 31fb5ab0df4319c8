"""Loops over numpy arrays, compiled by numba: without the interpreter's lock, and kept on disk."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """Compile a function at its first call, to run in parallel with other threads.

    It may use compiled functions and constants of its own module only: numba compiles anew when that
    file has changed, but does not notice changes elsewhere. The compiled code is kept beside the module
    or, where that cannot be written, in the user's cache folder; where neither can be written, each
    process compiles anew.
    """
    try:
        return cast(Function, njit(nogil=True, cache=True)(function))
    except RuntimeError:  # numba found no folder for its cache
        return cast(Function, njit(nogil=True)(function))
