"""Compiled code must match the current source."""

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba import njit
from numba.core.dispatcher import Dispatcher

from convs2s.text.alignment import compiled as module

TEXT = Path(module.__file__).parent
MODULES = sorted(path.stem for path in TEXT.glob("*.py") if "@compiled" in path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", MODULES)
def test_compiled_functions_use_compiled_functions_and_constants_of_their_own_module(name: str) -> None:
    """Numba's cache only notices edits of a function's own file: code from another file would be stale."""
    imported = importlib.import_module(f"convs2s.text.alignment.{name}")
    functions = [value.py_func for value in vars(imported).values() if isinstance(value, Dispatcher)]
    own = [function for function in functions if function.__module__ == imported.__name__]
    assert own
    for function in own:
        for used in function.__code__.co_names:
            value = vars(imported).get(used)
            if isinstance(value, Dispatcher):
                assert value.py_func.__module__ == imported.__name__, f"{function.__name__} calls {used}"
            if isinstance(value, int | float):
                source = Path(str(imported.__file__)).read_text(encoding="utf-8")
                assert f"\n{used}" in source, f"{function.__name__} uses {used}, defined elsewhere"


def test_functions_are_compiled_even_without_a_writable_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numba refuses to cache if neither the package nor the home folder is writable; work must go on."""
    asked = []

    def refuse(nogil: bool, cache: bool = False) -> Any:
        asked.append(cache)
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return njit(nogil=nogil)

    monkeypatch.setattr(module, "njit", refuse)

    @module.compiled
    def doubled(x: np.float64) -> np.float64:
        return x + x

    assert doubled(np.float64(1.5)) == 3.0
    assert asked == [True, False]
