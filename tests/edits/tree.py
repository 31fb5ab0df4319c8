"""A copy of the library with an edit, and a process that uses it."""

import importlib
import json
import multiprocessing
import os
import sys
import traceback
import types
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numba
import pytest

from tests.train.tiny import ROOT

Replacements = Sequence[tuple[str, str]]
"""Texts that occur exactly once in a file, and what replaces each."""


def copy_with_edit(folder: Path, file: str, replacements: Replacements) -> Path:
    """Make folder/convs2s with an edited file; the others are links. Return the folder.

    Compiled loops are kept beside their source, so the copy finds them through the links.
    """
    content = edit(file, replacements)
    path = Path(file)
    for parent in list(path.parents)[-2::-1]:  # convs2s first
        (folder / parent).mkdir(parents=True)
        for entry in (ROOT / parent).iterdir():
            if entry.name != "__pycache__" and not path.is_relative_to(parent / entry.name):
                (folder / parent / entry.name).symlink_to(entry)
    (folder / file).write_text(content, encoding="utf-8")
    return folder


def edit(file: str, replacements: Replacements) -> str:
    """Return the edited text of a file."""
    content = (ROOT / file).read_text(encoding="utf-8")
    for old, new in replacements:
        assert content.count(old) == 1, f"{file}: expected {old!r} once, found it {content.count(old)} times"
        content = content.replace(old, new)
    return content


def edit_here(monkeypatch: pytest.MonkeyPatch, file: str, replacements: Replacements) -> None:
    """Edit the functions and methods of a module in this process; not constructors, nor what it defines."""
    module = importlib.import_module(file.removesuffix(".py").replace("/", "."))
    edited: dict[str, Any] = {"__name__": module.__name__}
    source = edit(file, replacements)
    exec(compile(source, file, "exec"), edited)  # the project's own text
    before: dict[str, Any] = {"__name__": module.__name__}
    exec(compile((ROOT / file).read_text(encoding="utf-8"), file, "exec"), before)
    changed = 0
    for place, old, new in list_functions(before, edited):
        if (old.__code__.co_code, old.__code__.co_consts) != (new.__code__.co_code, new.__code__.co_consts):
            function = types.FunctionType(new.__code__, vars(module), new.__name__, new.__defaults__)
            for user in [getattr(module, place)] if place else list_users(module, new.__name__):
                monkeypatch.setattr(user, new.__name__, function)
            changed += 1
    assert changed, f"{file}: expected an edited function, found none"


def list_users(module: types.ModuleType, name: str) -> list[types.ModuleType]:
    """Return the modules that have a function of this one, under its name."""
    function = getattr(module, name)
    return [user for user in list(sys.modules.values()) if vars(user).get(name) is function]


def list_functions(
    before: dict[str, Any], edited: dict[str, Any]
) -> Iterator[tuple[str, types.FunctionType, types.FunctionType]]:
    """Yield the functions of two versions of a module, with the name of their class, if any."""
    for name, new in edited.items():
        if getattr(new, "__module__", None) != before["__name__"]:
            continue
        old = before[name]
        if isinstance(new, types.FunctionType):
            yield "", old, new
        elif isinstance(new, type):
            for member, method in vars(new).items():
                if isinstance(method, types.FunctionType) and member != "__init__":
                    yield name, vars(old)[member], method


def run_routes(tree: Path, out: Path, *arguments: Any) -> dict[str, dict[str, Any]]:
    """Return what `tests.edits.routes.run_all` returns in a process that imports convs2s from a folder.

    The process is a fork of this one, which has already imported all other packages.

    Args:
        out: a file for the result, as JSON; what is printed goes next to it.
    """
    log = out.with_suffix(".log")

    def work() -> None:
        with log.open("w") as stream:
            os.dup2(stream.fileno(), 1)
            os.dup2(stream.fileno(), 2)
        try:
            forget_project()
            sys.path.insert(0, str(tree))
            # Loops in such a folder are found by the path of their source, which is another in each copy.
            numba.config.CACHE_DIR = ""  # type: ignore[attr-defined]
            result = importlib.import_module("tests.edits.routes").run_all(*arguments)
            origin = sys.modules["convs2s"].__file__
            assert origin == str(tree / "convs2s" / "__init__.py"), origin
            out.write_text(json.dumps(result), encoding="utf-8")
        except BaseException:
            log.write_text(log.read_text() + traceback.format_exc())
            os._exit(1)
        os._exit(0)  # without the endings of pytest and its plugins

    process = multiprocessing.get_context("fork").Process(target=work)
    process.start()
    process.join()
    assert process.exitcode == 0, log.read_text()[-3000:]
    results: dict[str, dict[str, Any]] = json.loads(out.read_text(encoding="utf-8"))
    return results


def forget_project() -> None:
    """Have modules of the project imported anew, without shape checks."""
    for name in list(sys.modules):
        if name.split(".")[0] in ("convs2s", "tests"):
            del sys.modules[name]
    sys.meta_path[:] = [
        finder for finder in sys.meta_path if not type(finder).__module__.startswith("jaxtyping")
    ]
