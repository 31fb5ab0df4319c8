"""Loops compiled by numba, and a cache of them that nothing can leave unusable.

Numba compiles a loop at its first call with arguments of certain types. Its own cache needs a folder that
this user can write, even to read from it; its index can give one file to two results, if two processes write
it at once; and it fails for good once a file is damaged. Here each result is a file of its own, named after
what it depends on and checked against a digest. What is damaged is compiled and written again; what cannot be
written is compiled at each start.
"""
# mypy: disable-error-code="no-untyped-call,attr-defined"

import contextlib
import functools
import hashlib
import inspect
import os
import pickle
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
from numba.core.dispatcher import Dispatcher
from numba.core.serialize import dumps

from convs2s.base.code_folders import chosen_folder, is_private, make_private_folder, user_cache
from convs2s.base.files import atomic_path, remove

CHOICE = "NUMBA_CACHE_DIR"
DIGEST_BYTES = hashlib.sha256().digest_size


def compiled(*inlined: str, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator that compiles a loop at its first call on a machine; it releases the GIL.

    Args:
        inlined: files of which the loop inlines code, besides its own: after an edit, it is compiled again.
        options: of numba.njit.
    """

    def decorate(function: Callable[..., Any]) -> Any:
        """Return the loop, compiled at its first call unless `LoopCache` has it from an earlier process."""
        loop = numba.njit(nogil=True, **options)(function)
        if isinstance(loop, Dispatcher):  # not with NUMBA_DISABLE_JIT
            loop._cache = LoopCache(function, [inspect.getfile(function), *inlined, __file__])
            loop._compiler.compile = with_signals_held(loop._compiler.compile)
        return loop

    return decorate


class LoopCache(NullCache):
    """The results of compiling one function, as numba's dispatcher uses them.

    They are read in NUMBA_CACHE_DIR, beside the source in `__pycache__`, and in the user's cache folder, and
    written to the first of these that can be written. As they are pickles, whoever can write them could run
    code as this user: folders and files that others can change are left alone.
    """

    def __init__(self, function: Callable[..., Any], sources: list[str]) -> None:
        assert function.__closure__ is None, "two functions of the same lines would have one name"
        self.source = Path(sources[0]).absolute()
        self.stem = f"{self.source.stem}.{function.__qualname__}"
        self.facts = [numba.__version__, sys.implementation.cache_tag, *map(source_digest, sources)]

    @property
    def cache_path(self) -> str:
        """The first of the folders."""
        return str(self.folders()[0])

    def folders(self) -> list[Path]:
        """Return the folders, the first one first; they need not exist."""
        source_folder = self.source.parent
        own = f"{source_folder.name}_{hashlib.sha256(os.fsencode(source_folder)).hexdigest()[:16]}"
        chosen, user = chosen_folder(CHOICE), user_cache()
        return [
            *([chosen / own] if chosen else []),
            source_folder / "__pycache__",
            *([user / "numba" / own] if user else []),
        ]

    def is_private(self, path: Path) -> bool:
        """Return whether a file or folder of the cache can be changed only by those who are trusted.

        They are this user, root, and in `__pycache__` whoever may write the source.
        """
        code = self.source.parent
        return is_private(path, code if code / "__pycache__" in (path, path.parent) else None)

    def paths(self, signature: Any, codegen: Any) -> list[Path]:
        """Return where the result may be for a signature, and the processor that code is generated for."""
        facts = f"{self.facts} {signature} {codegen.magic_tuple()}"
        name = f"{self.stem}-{hashlib.sha256(facts.encode()).hexdigest()[:16]}.nbc"
        return [folder / name for folder in self.folders()]

    def load_overload(self, signature: Any, context: Any) -> Any:
        """Return the result for a signature, or None if there is no whole one."""
        context.refresh()
        for path in self.paths(signature, context.codegen()):
            with contextlib.suppress(OSError):
                if not (self.is_private(path.parent) and self.is_private(path)):
                    continue
                content = path.read_bytes()
                digest, payload = content[:DIGEST_BYTES], content[DIGEST_BYTES:]
                if digest == hashlib.sha256(payload).digest():
                    return CompileResult._rebuild(context, *pickle.loads(payload))
        return None

    def save_overload(self, signature: Any, result: Any) -> None:
        """Keep a result, if any of the folders can be written."""
        if result.library.has_dynamic_globals:  # addresses of this process
            return
        payload = dumps(result._reduce())
        for path in self.paths(signature, result.codegen):
            with contextlib.suppress(OSError):
                make_private_folder(path.parent)
                if not self.is_private(path.parent):
                    continue
                if not self.is_private(path):
                    remove(path)
                with atomic_path(path) as temporary:
                    temporary.write_bytes(hashlib.sha256(payload).digest() + payload)
                    temporary.chmod(0o644)
                return
        warnings.warn(
            f"loops cannot be kept in {' or '.join(map(str, self.folders()))}, so they are compiled at every "
            f"start. To keep them, set {CHOICE} to a folder that you, and nobody else, can write.",
            stacklevel=2,
        )


@functools.cache
def source_digest(path: str) -> str:
    """Return a digest of a source file."""
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def with_signals_held(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function, during which no handler of a signal runs in this thread; those wait for its end.

    LLVM calls back into Python, where the exception of a handler, such as that of Ctrl-C, would be lost.
    """

    @functools.wraps(function)
    def holding(*arguments: Any) -> Any:
        with signals_held():
            return function(*arguments)

    return holding


@contextlib.contextmanager
def signals_held() -> Iterator[None]:
    """Hold signals back until the end; outside the main thread, which handles them all, do nothing."""
    arrived = list[int]()
    handlers = dict[int, Any]()
    if threading.current_thread() is threading.main_thread():
        for number in map(int, signal.valid_signals()):
            if callable(signal.getsignal(number)):
                handlers[number] = signal.signal(number, lambda number, _: arrived.append(number))
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for number in arrived:
            signal.raise_signal(number)
