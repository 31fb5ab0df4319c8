"""Compiled loops come from the cache, and always match their source."""

import ast
import importlib
import multiprocessing
import re
import shutil
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from numba.core.dispatcher import Dispatcher

import convs2s
from convs2s.base.compilation import source_digest
from convs2s.engine import loops

ROOT = Path(str(convs2s.__path__[0])).parent
MODULES = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for path in (ROOT / "convs2s").rglob("*.py")
    if re.search(r"^@(compiled|vectorized)\b", path.read_text(encoding="utf-8"), re.MULTILINE)
)
SOFTMAX = [0.27, 0.73]


def loops_of(module: ModuleType) -> list[Any]:
    """Return the compiled functions of a module."""
    return [value for value in vars(module).values() if isinstance(value, Dispatcher)]


def use(folder: Path) -> tuple[list[float], int]:
    """Return a softmax by the package in a folder, and how often its code came from the cache."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "convs2s"]:
        del sys.modules[name]
    sys.path.insert(0, str(folder))
    softmax = importlib.import_module("convs2s.engine.decode.loops").softmax
    scores = np.array([0, 1], np.float32)
    softmax(scores)
    return [round(float(score), 2) for score in scores], sum(softmax.stats.cache_hits.values())


def run(folder: Path) -> tuple[list[float], int]:
    """Use the package in a process that has loaded none of its code; importing PyTorch again takes longer."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as pool:
        return pool.submit(use, folder).result()


def test_a_fresh_process_uses_the_cache_until_what_is_inlined_changes(tmp_path: Path) -> None:
    """Compiling all loops takes half a minute."""
    uncompiled = shutil.ignore_patterns("__pycache__")
    engine = tmp_path / "convs2s" / "engine"
    for name in ("base", "engine"):
        shutil.copytree(ROOT / "convs2s" / name, tmp_path / "convs2s" / name, ignore=uncompiled)
    (tmp_path / "convs2s" / "__init__.py").touch()
    assert run(tmp_path) == (SOFTMAX, 0)
    assert run(tmp_path) == (SOFTMAX, 1)
    path = engine / "loops.py"
    path.write_text(path.read_text().replace("math.log(2.0) ** k", "math.log(3.0) ** k"))
    assert run(tmp_path)[0] != SOFTMAX


@pytest.mark.slow
def test_installation_compiles_every_loop(tmp_path: Path) -> None:
    """Otherwise the first translation after an installation would wait for the compiler."""
    for name in ("convs2s", "pipelines", "experiments"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    subprocess.run([sys.executable, "-m", "pipelines.compile_loops"], cwd=tmp_path, check=True)
    files = [path.name.partition("-")[0] for path in tmp_path.rglob("*.nbc")]
    for name in MODULES:
        functions = loops_of(importlib.import_module(name))
        assert {f"{name.rpartition('.')[2]}.{f.py_func.__name__}" for f in functions} <= set(files)
    assert files.count("team.share_code") > 20


@pytest.mark.parametrize("name", MODULES)
def test_compiled_functions_use_only_their_file_and_the_shared_loops(name: str) -> None:
    """Edits of other files are not noticed, and old code would go on."""
    module = importlib.import_module(name)
    functions = loops_of(module)
    assert functions
    used = {word for function in functions for word in function.py_func.__code__.co_names}
    for node in ast.walk(ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("convs2s"):
            foreign = {alias.asname or alias.name for alias in node.names} & used
            assert not foreign or node.module == loops.__name__, foreign
            digest = source_digest(str(loops.__file__))
            assert not foreign or all(digest in f._cache.facts for f in functions)
