"""Compiled code always matches the source in memory, and comes from an undamaged file of the cache."""

import ast
import importlib
import os
import re
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from types import CodeType
from typing import Any

import numpy as np
import pytest
from numba.core.caching import CacheImpl
from numba.core.dispatcher import Dispatcher

from convs2s.base import compiled as module
from convs2s.engine.decode import loops as decode_loops
from tests.fresh import context

ROOT = Path(module.__file__).parents[3]
USERS = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for path in (ROOT / "convs2s").rglob("*.py")
    if re.search(r"^@(compiled|vectorized)$", path.read_text(encoding="utf-8"), re.MULTILINE)
)
OUTER = """
from convs2s.base.compiled import compiled
from toy_inner import FACTOR, scaled

@compiled
def outer(x):
    return scaled(x) + FACTOR
"""
INNER = """
from convs2s.base.compiled import compiled

FACTOR = 100.0

@compiled
def scaled(x):
    return 2.0 * x
"""


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], tuple[float, bool]]:
    """Return `call_outer` for the two toy modules, which importing must read from their files each time."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # Python overlooks edits within a second
    write(tmp_path, OUTER, INNER)
    return lambda: call_outer(tmp_path)


def write(folder: Path, outer: str, inner: str) -> None:
    (folder / "toy_outer.py").write_text(outer)
    (folder / "toy_inner.py").write_text(inner)
    for path in folder.glob("toy_*.py"):
        os.utime(path, (1, 1))  # an edit must be noticed by its content


def call_outer(folder: Path) -> tuple[float, bool]:
    """Import the toy modules afresh; return outer(1), and whether its code came from the cache."""
    for name in ("toy_outer", "toy_inner"):
        sys.modules.pop(name, None)
    importlib.invalidate_caches()
    module.sources.cache_clear()
    outer = importlib.import_module("toy_outer").outer
    return outer(1.0), bool(outer.stats.cache_hits)


def cached(folder: Path, function: str) -> Path:
    """Return the only file with a function's code."""
    [path] = (folder / "__pycache__").glob(f"{function}-*")
    return path


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        ("2.0 * x", "6.0 * x", 106.0),
        ("FACTOR = 100.0", "FACTOR = 500.0", 502.0),
        ("@compiled\ndef", "import functools\n@functools.partial(compiled, fastmath=True)\ndef", 102.0),
    ],
)
def test_an_edit_of_another_module_leads_to_compilation(
    run: Any, tmp_path: Path, old: str, new: str, wanted: float
) -> None:
    """Numba inlines the functions and constants of other files, but compares only its own."""
    assert run() == (102.0, False)
    write(tmp_path, OUTER, INNER.replace(old, new))
    assert run() == (wanted, False)
    assert run() == (wanted, True)
    assert cached(tmp_path, "toy_outer.outer").suffix == ".nbc"  # the old one was replaced
    write(tmp_path, OUTER, INNER)
    assert run() == (102.0, False)


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: content[:-1],
        lambda content: content[:-9] + bytes([content[-9] ^ 1]) + content[-8:],
    ],
    ids=["empty", "cut", "changed"],
)
def test_a_damaged_file_is_neither_unpickled_nor_run_but_repaired(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: Callable[[bytes], bytes]
) -> None:
    """Unpickling it could fail or run anything, and a wrong bit in machine code, give wrong alignments."""
    run()
    for path in (cached(tmp_path, "toy_outer.outer"), cached(tmp_path, "toy_inner.scaled")):
        path.write_bytes(damage(path.read_bytes()))
    with monkeypatch.context() as patch:
        patch.setattr(module, "pickle", None)
        assert run() == (102.0, False)
    assert run() == (102.0, True)


@pytest.mark.parametrize("name", USERS)
def test_compiled_functions_use_only_modules_in_their_folder(name: str) -> None:
    """Edits of others would go unnoticed."""
    user = importlib.import_module(name)
    functions = [value for value in vars(user).values() if isinstance(value, Dispatcher)]
    used = {word for function in functions for word in names_in(function.py_func.__code__)}
    assert functions
    for node in ast.walk(ast.parse(Path(str(user.__file__)).read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("convs2s"):
            foreign = {alias.asname or alias.name for alias in node.names} & used
            assert not foreign or str(node.module).rpartition(".")[0] == name.rpartition(".")[0], foreign


def names_in(code: CodeType) -> set[str]:
    """Return the names of globals and attributes in a function's code, and in functions inside it."""
    inner = [names_in(constant) for constant in code.co_consts if isinstance(constant, CodeType)]
    return {*code.co_names}.union(*inner)


def count_hits() -> int:
    """Call a compiled function, whose options contain a set; return whether its code came from the cache."""
    function: Any = decode_loops.copy
    target = np.zeros(2, np.float32)
    function(np.ones(2, np.float32), target)
    assert target.tolist() == [1.0, 1.0]
    return sum(function.stats.cache_hits.values())


def test_a_fresh_process_uses_the_cache_of_an_earlier_one() -> None:
    """Compiling all loops takes half a minute."""
    count_hits()
    with ProcessPoolExecutor(1, context()) as processes:
        assert processes.submit(count_hits).result() == 1


def test_functions_are_compiled_even_without_a_writable_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numba refuses to cache if neither the package nor the home folder is writable; work must go on."""
    monkeypatch.setattr(CacheImpl, "_locator_classes", [])

    @module.compiled
    def doubled(x: np.float64) -> np.float64:
        return x + x

    assert doubled(np.float64(1.5)) == 3.0
