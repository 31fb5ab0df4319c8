"""Loops over numpy arrays, compiled by numba: they release the GIL and are cached on disk.

Numba's own cache only compares the file of the called function. It would run old code after an edit of the
compiler's options or of functions from other files, and one damaged file would make every run fail.
"""
# mypy: disable-error-code="no-untyped-call"

import contextlib
import hashlib
import pickle
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, TypeVar, cast

import llvmlite
import numba
import numpy as np
from numba.core.caching import FunctionCache, IndexDataCacheFile

Function = TypeVar("Function", bound=Callable[..., Any])

VERSIONS = (sys.version, llvmlite.__version__, numba.__version__, np.__version__)
LIBRARIES = {*sys.stdlib_module_names, "llvmlite", "numba", "numpy"}
"""Packages whose code is known by their version."""
DIGEST_BYTES = 32


def compiled(function: Function, **options: Any) -> Function:
    """Compile a function at its first call, to run in parallel with other threads; `options` are njit's.

    The compiled code is cached next to the module or, if that folder is not writable, in the user's cache
    folder; if neither is, each process compiles it again. An edit of anything that the code depends on (see
    `parts`) also leads to compilation; functions must not depend on implementations registered with
    `numba.extending.overload`, which go unnoticed.
    """
    dispatcher = numba.njit(nogil=True, **options)(function)
    with contextlib.suppress(RuntimeError):  # numba found no folder for its cache
        cache = FunctionCache(function)
        cache._cache_file = CheckedFiles(cache.cache_path, cache._impl.filename_base, dispatcher)
        dispatcher._cache = cache
    return cast(Function, dispatcher)


class CheckedFiles(IndexDataCacheFile):
    """The cached code of one function: a file for each combination of argument types and CPU, and no index.

    A file begins with a digest of its content and of what the code is made of. A file with another digest is
    out of date or damaged: it is not unpickled, and is overwritten once the code has been compiled again.

    Args:
        folder: of the files.
        name: what the files' names begin with.
        function: compiled.
    """

    def __init__(self, folder: str, name: str, function: Any) -> None:
        super().__init__(folder, name, None)
        self.function = function

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
        digest = hashlib.blake2b(data, digest_size=DIGEST_BYTES)
        digest.update("\n".join(parts((VERSIONS, key, self.function), {})).encode())
        return digest.digest()


def parts(value: Any, seen: dict[Any, int], names: frozenset[str] = frozenset()) -> list[str]:
    """Return all that code compiled from a value depends on: bytecode, options, constants, fields of types.

    Whatever functions reach through globals, defaults, closures and modules counts; libraries count by their
    versions. All is taken from memory, because a file may have been edited since it was imported. Code that
    uses a value whose repr contains an address is compiled in every process.

    Args:
        value: a compiled function, or anything that it uses.
        seen: the functions, classes and modules so far, numbered; filled in place.
        names: names in the code that uses the value; of a module, only attributes with these names count.
    """
    if isinstance(value, str | int | float | None):  # most values
        return [f"{type(value)} {value!r}"]
    found = []
    if isinstance(value, FunctionType | ModuleType | type) or hasattr(value, "__wrapped__"):
        module = value.__name__ if isinstance(value, ModuleType) else value.__module__
        place = id(value), names if isinstance(value, ModuleType) else None
        found.append(f"{module} {getattr(value, '__qualname__', '')} {seen.get(place)}")
        if place in seen or str(module).partition(".")[0] in LIBRARIES:
            return found
        seen[place] = len(seen)
    names = names_in(value.__code__) if isinstance(value, FunctionType) else names
    own, inner = content(value, names)
    found.append(f"{type(value)} {own!r} {len(inner)}")
    for part in inner:
        found += parts(part, seen, names)
    return found


def content(value: Any, names: frozenset[str]) -> tuple[Any, Sequence[Any]]:
    """Return what a value is apart from the values in it, and these; `names` of a function are its own."""
    own: Any = ""
    inner: Sequence[Any] = ()
    match value:
        case CodeType():
            local = value.co_argcount, value.co_varnames, value.co_cellvars, value.co_freevars
            own, inner = (value.co_code, value.co_exceptiontable, value.co_names, local), value.co_consts
        case FunctionType():
            used = {name: value.__globals__[name] for name in sorted(names) if name in value.__globals__}
            cells = [cell.cell_contents for cell in value.__closure__ or ()]
            inner = value.__code__, value.__defaults__, value.__kwdefaults__, cells, used
        case ModuleType():
            inner = [{name: getattr(value, name) for name in sorted(names) if hasattr(value, name)}]
        case type():
            public = {name: held for name, held in vars(value).items() if not name.startswith("__")}
            inner = value.__bases__, public
        case property():
            inner = [value.fget]
        case dict():
            own, inner = list(value), list(value.values())
        case list() | tuple():
            inner = value
        case set() | frozenset():
            own = sorted(map(repr, value))
        case np.ndarray():
            own = value.dtype, value.shape, value.strides, value.tobytes()
        case _ if isinstance(getattr(value, "key", None), tuple):  # numba's type of an argument
            inner = value.key
        case _ if hasattr(value, "__wrapped__"):  # a function that numba compiles
            inner = [getattr(value, name, None) for name in ("targetoptions", "locals", "__wrapped__")]
        case _:
            own = value
    return own, inner


def names_in(code: CodeType) -> frozenset[str]:
    """Return the names of globals and attributes in a function's code, and in functions inside it."""
    inner = [names_in(constant) for constant in code.co_consts if isinstance(constant, CodeType)]
    return frozenset(code.co_names).union(*inner)
