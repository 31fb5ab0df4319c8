"""Compiled loops come from numba's cache, and always match their source."""

import ast
import importlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from numba.core.dispatcher import Dispatcher

import convs2s
from convs2s.engine import loops

ROOT = Path(str(convs2s.__path__[0])).parent
MODULES = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for path in (ROOT / "convs2s").rglob("*.py")
    if re.search(r"^@(njit|vectorized)\b", path.read_text(encoding="utf-8"), re.MULTILINE)
)
PROGRAM = """
import numpy as np
from convs2s.engine.decode.loops import softmax
scores = np.array([0, 1], np.float32)
softmax(scores)
print([float(f"{score:.2f}") for score in scores], sum(softmax.stats.cache_hits.values()))
"""
SOFTMAX = "[0.27, 0.73]"


def run(folder: Path) -> str:
    """Run PROGRAM with the package in a folder; return what it prints."""
    environment = os.environ | {"PYTHONPATH": str(folder)}
    environment.pop("NUMBA_CACHE_DIR", None)
    return subprocess.check_output([sys.executable, "-c", PROGRAM], cwd=folder, env=environment, text=True)


def test_a_fresh_process_uses_the_cache_until_what_is_inlined_changes(tmp_path: Path) -> None:
    """Compiling all loops takes half a minute; numba itself does not notice edits of other files."""
    uncompiled, engine = shutil.ignore_patterns("__pycache__"), tmp_path / "convs2s" / "engine"
    shutil.copytree(ROOT / "convs2s" / "engine", engine, ignore=uncompiled)
    (tmp_path / "convs2s" / "__init__.py").touch()
    assert run(tmp_path) == f"{SOFTMAX} 0\n"
    assert run(tmp_path) == f"{SOFTMAX} 1\n"
    path = engine / "loops.py"
    path.write_text(path.read_text().replace("math.log(2.0) ** k", "math.log(3.0) ** k"))
    assert SOFTMAX not in run(tmp_path)


@pytest.mark.parametrize("name", MODULES)
def test_compiled_functions_use_only_their_file_and_the_shared_loops(name: str) -> None:
    """Numba would go on with old code after edits of other files."""
    module = importlib.import_module(name)
    functions: list[Any] = [value for value in vars(module).values() if isinstance(value, Dispatcher)]
    assert functions
    used = {word for function in functions for word in function.py_func.__code__.co_names}
    for node in ast.walk(ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("convs2s"):
            foreign = {alias.asname or alias.name for alias in node.names} & used
            assert not foreign or node.module == loops.__name__, foreign
            assert not foreign or all(loops.DIGEST in f.py_func.__qualname__ for f in functions)
