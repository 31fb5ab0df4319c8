"""Loops over numpy arrays, compiled by numba: they release the GIL and are cached on disk."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function, **options: Any) -> Function:
    """Compile a function at its first call, to run in parallel with other threads; `options` are njit's.

    The function may only use compiled functions and constants of its own module: numba recompiles when that
    file changes, but does not notice changes elsewhere. The compiled code is cached next to the module or, if
    that folder is not writable, in the user's cache folder; if neither is, each process compiles it again.
    """
    try:
        return cast(Function, njit(nogil=True, cache=True, **options)(function))
    except RuntimeError:  # numba found no folder for its cache
        return cast(Function, njit(nogil=True, **options)(function))
