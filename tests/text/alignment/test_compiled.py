"""Compiled code always matches the source in memory, and comes from an undamaged file of the cache."""

import importlib
import os
import random
import re
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest
from numba.core.caching import CacheImpl
from numba.core.dispatcher import Dispatcher

from convs2s.kernels import decoding, loops
from convs2s.text.alignment import compiled as module
from tests.fresh import context

ROOT = Path(module.__file__).parents[3]
USERS = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for path in (ROOT / "convs2s").rglob("*.py")
    if re.search(r"^@(compiled|vectorized)$", path.read_text(encoding="utf-8"), re.MULTILINE)
)
OUTER = """
from convs2s.text.alignment.compiled import compiled
from toy_inner import FACTOR, scaled

@compiled
def outer(x):
    return scaled(x) + FACTOR
"""
INNER = """
from convs2s.text.alignment.compiled import compiled

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
    outer = importlib.import_module("toy_outer").outer
    return outer(1.0), bool(outer.stats.cache_hits)


def cached(folder: Path, function: str) -> Path:
    """Return the only file with a function's code."""
    [path] = (folder / "__pycache__").glob(f"{function}-*")
    return path


def test_unchanged_code_comes_from_the_cache(run: Any, tmp_path: Path) -> None:
    """Compiling takes seconds; an edit of a comment changes nothing."""
    assert run() == (102.0, False)
    assert run() == (102.0, True)
    write(tmp_path, OUTER + "# a comment", INNER.replace("2.0 * x", "2.0 * x  # another"))
    assert run() == (102.0, True)


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


def flip(content: bytes, place: int) -> bytes:
    changed = bytearray(content)
    changed[place] ^= 1
    return bytes(changed)


@pytest.mark.fault("damage")
@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: content[: module.DIGEST_BYTES // 2],
        lambda content: content[:-1],
        lambda content: content + b"\0",
        lambda content: random.Random(1).randbytes(len(content)),
        lambda content: flip(content, 0),
        lambda content: flip(content, module.DIGEST_BYTES),
        lambda content: flip(content, len(content) // 2),
        lambda content: flip(content, -1),
    ],
    ids=["empty", "half a digest", "cut", "longer", "random", "digest", "first bit", "code", "last bit"],
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


BASE = """
from typing import NamedTuple
import math
from types import ModuleType
import numpy as np
from convs2s.text.alignment.compiled import compiled
from numba.extending import intrinsic
from numba import types
other = ModuleType("other")
other.LIMIT = 1

class Pair(NamedTuple):
    first: int
    second: int

SCALE = np.float32(0.5)
TABLE = np.arange(2000.0)
TERMS = [1, {"a": (2, 3)}]

def helper(builder):
    return TERMS

@intrinsic
def primitive(context, value):
    def generate(_, builder, signature, arguments):
        return helper(builder)
    return types.float32(types.float32), generate

def factory(n):
    @compiled
    def inner(x, step=3):
        return x * n + step
    return inner

inner = factory(4)

@compiled
def f(x):
    pair = Pair(1, 2)
    return f(0) + primitive(x) + SCALE * TABLE[3] + inner(x) + math.exp(pair.first) + other.LIMIT
"""


def described(source: str) -> list[str]:
    names: dict[str, Any] = {"__name__": "toy", "compiled": module.compiled}
    exec(source, names)
    return module.parts(names["f"], {})


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("np.float32(0.5)", "np.float32(0.25)"),
        ("np.float32(0.5)", "0.5"),
        ("np.arange(2000.0)", "np.arange(2000.0) + (np.arange(2000) == 1000)"),
        ("(2, 3)", "(2, 4)"),
        ("return TERMS", "return TERMS[:1]"),
        ("types.float32(types.float32)", "types.float64(types.float32)"),
        ("factory(4)", "factory(5)"),
        ("step=3", "step=4"),
        ("x * n", "x / n"),
        ("LIMIT = 1", "LIMIT = 2"),
        ("    first: int\n    second: int", "    second: int\n    first: int"),
        ("math.exp", "math.log"),
        ("TABLE[3]", "TABLE[4]"),
        ("@compiled\ndef f", "@lambda g: compiled(g, error_model='numpy')\ndef f"),
        ("    @compiled", "    @lambda g: compiled(g, fastmath={'nsz', 'arcp'})"),
    ],
)  # fmt: skip
def test_all_that_machine_code_depends_on_is_noticed(old: str, new: str) -> None:
    """Numba freezes it in the code."""
    assert BASE.count(old) == 1
    before = described(BASE)
    assert before == described(BASE)
    assert before != described(BASE.replace(old, new))


class Pair(NamedTuple):
    first: int
    second: int


class Swapped(NamedTuple):
    second: int
    first: int


def test_fields_of_argument_types_are_noticed() -> None:
    """Numba compares the types of named tuples by name, and compiled code accesses their fields by place."""
    Swapped.__name__ = Swapped.__qualname__ = "Pair"
    typeof: Any = numba.typeof
    types = [(typeof(made(1, 2)), typeof(1.5)) for made in (Pair, Pair, Swapped)]
    assert repr(types[0]) == repr(types[2])
    found = [module.parts(each, {}) for each in types]
    assert found[0] == found[1] != found[2]


def test_a_constant_of_exp_is_noticed_by_the_loops_of_decoding(monkeypatch: pytest.MonkeyPatch) -> None:
    """They inline exp, which is in another module."""
    before = module.parts(decoding.softmax, {})
    monkeypatch.setattr(loops, "POWERS", [3.0 * power for power in loops.POWERS])
    assert before != module.parts(decoding.softmax, {})


@pytest.mark.parametrize("name", USERS)
def test_code_is_the_same_in_each_process(name: str) -> None:
    """An address in a value's repr would make each process compile the code again."""
    values = vars(importlib.import_module(name)).values()
    functions = [value for value in values if isinstance(value, Dispatcher)]
    assert functions
    for function in functions:
        assert not [part for part in module.parts(function, {}) if " at 0x" in part]


def count_hits() -> int:
    """Call a compiled function, whose options contain a set; return whether its code came from the cache."""
    function: Any = decoding.copy
    target = np.zeros(2, np.float32)
    function(np.ones(2, np.float32), target)
    assert target.tolist() == [1.0, 1.0]
    return sum(function.stats.cache_hits.values())


def test_a_fresh_process_uses_the_cache_of_an_earlier_one() -> None:
    """Sets are ordered differently in each process, and objects have other addresses."""
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
