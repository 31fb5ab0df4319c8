"""Loops over numpy arrays, compiled by numba: they release the GIL and are cached on disk.

Numba's own cache only compares the file of the called function. It would run old code after an edit of the
compiler's options or of a function that another file holds, and one damaged file would make every run fail.
"""
# mypy: disable-error-code="no-untyped-call"

import contextlib
import functools
import hashlib
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import llvmlite
import numba
import numpy as np
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.runtime import rtsys

Function = TypeVar("Function", bound=Callable[..., Any])

VERSIONS = (sys.version, llvmlite.__version__, numba.__version__, np.__version__)
DIGEST_BYTES = 32


def compiled(function: Function, **options: Any) -> Function:
    """Compile a function at its first call, to run in parallel with other threads; `options` are njit's.

    The function may only use compiled functions and constants of modules in its own folder: after an edit of
    any of them, or of this module, it is compiled again. If no folder for the cache is writable, each process
    compiles it.
    """
    dispatcher = numba.njit(nogil=True, **options)(function)
    with contextlib.suppress(RuntimeError):  # numba found no folder for its cache
        cache = QuickCache(function)
        origin = sources(Path(function.__code__.co_filename).parent)
        cache._cache_file = CheckedFiles(cache.cache_path, cache._impl.filename_base, origin)
        dispatcher._cache = cache
    return cast(Function, dispatcher)


class QuickCache(FunctionCache):
    """Numba's cache without the compiler's preparations, which take most of the time to load code."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the code for these argument types, or None."""
        rtsys.initialize(target_context)  # what compiled code calls to get memory
        return self._load_overload(sig, target_context)


@functools.cache
def sources(folder: Path) -> bytes:
    """Return the content of all modules in a folder and of this one, which has options for the compiler."""
    return b"".join(path.read_bytes() for path in [Path(__file__), *sorted(folder.glob("*.py"))])


class CheckedFiles(IndexDataCacheFile):
    """The cached code of one function: a file for each combination of argument types and CPU, and no index.

    A file begins with a digest of its content and of its origin, what the code is compiled from. A file with
    another digest is out of date or damaged: it is not unpickled, but replaced after compilation.
    """

    def __init__(self, folder: str, name: str, origin: bytes) -> None:
        super().__init__(folder, name, None)
        self.origin = origin

    def load(self, key: Any) -> Any:
        """Return what was saved under a key, or None if that is missing, out of date or damaged."""
        try:
            content = self.path(key).read_bytes()
        except OSError:
            return None
        found, data = content[:DIGEST_BYTES], content[DIGEST_BYTES:]
        return pickle.loads(data) if found == self.digest(key, data) else None

    def save(self, key: Any, data: Any) -> None:
        """Save compiled code under a key; other processes see the new file complete or not at all."""
        content: bytes = self._dump(data)
        with self._open_for_write(str(self.path(key))) as file:
            file.write(self.digest(key, content) + content)

    def path(self, key: Any) -> Path:
        """Return the file of a key, which begins with the argument types and the CPU."""
        name = hashlib.blake2b(repr(key[:2]).encode(), digest_size=8).hexdigest()
        return Path(self._cache_path) / f"{self._index_name.removesuffix('.nbi')}.{name}.nbc"

    def digest(self, key: Any, data: bytes) -> bytes:
        """Return the digest that begins a file."""
        facts = repr((VERSIONS, key)).encode()
        return hashlib.blake2b(data + facts + self.origin, digest_size=DIGEST_BYTES).digest()
