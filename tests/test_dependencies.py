"""What code imports is declared in pyproject.toml, and whoever only uses models needs no extra."""

import ast
import itertools
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
DISTRIBUTIONS = packages_distributions()
"""The names under which indexes have the installed packages, by the name that is imported."""
EXTRAS = {
    "convs2s": ["pipeline", "serve", "subword-nmt"],
    "pipelines": ["pipeline"],
    "tests": ["pipeline", "serve", "dev"],
    "benchmarks": ["pipeline", "serve", "dev"],
}
"""Folders of code, and the extras whose packages they may import."""
ALONE = [
    "convs2s.cli", "convs2s.package.translator", "convs2s.package.text_candidates",
    "convs2s.package.layer_attention", "convs2s.engine.decode.model", "convs2s.fairseq.importer",
]  # fmt: skip
"""What works without an extra. A module may still import a package of one within a function."""


def normalize(distribution: str) -> str:
    """Return a name as indexes compare it."""
    return re.sub(r"[-_.]+", "-", distribution).lower()


def declared(*extras: str) -> set[str]:
    """Return the distributions that the library needs, and some extras."""
    optional = PROJECT["optional-dependencies"]
    names = set[str]()
    for requirement in [*PROJECT["dependencies"], *(line for extra in extras for line in optional[extra])]:
        name, inner = re.findall(r"^([\w.-]+)(?:\[(.*?)\])?", requirement)[0]
        names |= declared(*inner.split(",")) if name == PROJECT["name"] else {normalize(name)}
    return names


def of_this_python(statements: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a module, those for other versions of Python left out."""
    for statement in statements:
        match statement:
            case ast.If(test=ast.Compare(left=ast.Attribute(attr="version_info"), comparators=[first])):
                newer = sys.version_info >= ast.literal_eval(first)
                yield from statement.body if newer else statement.orelse
            case _:
                yield statement


def imports(path: Path, *, at_once: bool = False) -> Iterator[str]:
    """Yield the modules that a file imports; `at_once`: only those imported when it is."""
    statements = list(of_this_python(ast.parse(path.read_text(encoding="utf-8")).body))
    for node in statements if at_once else itertools.chain(*map(ast.walk, statements)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)  # which may be modules


def is_declared(module: str, distributions: set[str]) -> bool:
    """Return whether a module is Python's, ours, or of one of these distributions."""
    top = module.partition(".")[0]
    names = {normalize(name) for name in DISTRIBUTIONS.get(top, [top])}
    return top in sys.stdlib_module_names or top in EXTRAS or bool(names & distributions)


@pytest.mark.parametrize("folder", EXTRAS)
def test_what_is_imported_is_declared(folder: str) -> None:
    """What another package happens to bring may be gone with its next version."""
    distributions = declared(*EXTRAS[folder])
    undeclared = {
        (path.relative_to(ROOT).as_posix(), module)
        for path in (ROOT / folder).rglob("*.py")
        for module in imports(path)
        if not is_declared(module, distributions)
    }
    assert undeclared == set()


def source(module: str) -> Path | None:
    """Return the file of a module of the library; None if there is none."""
    path = ROOT / module.replace(".", "/")
    files = [file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file()]
    return files[0] if files else None


def follow_imports(start: Iterable[str], distributions: set[str]) -> tuple[set[str], set[tuple[str, str]]]:
    """Follow what modules import at once, at any distance.

    Returns:
        The modules of ours that were reached, and what they import of other distributions than these.
    """
    waiting = list(start)
    seen, undeclared = set[str](), set[tuple[str, str]]()
    while waiting:
        importer = waiting.pop()
        file = source(importer)
        if importer in seen or file is None:
            continue
        seen.add(importer)
        modules = list(imports(file, at_once=True))
        waiting += modules
        undeclared |= {(importer, module) for module in modules if not is_declared(module, distributions)}
    return seen, undeclared


def test_models_are_used_without_an_extra() -> None:
    """None of the modules that this imports, at any distance, imports more than the library alone needs."""
    seen, wrong = follow_imports(ALONE, declared())
    assert {"convs2s.base.files", "convs2s.engine.loops", "convs2s.text.words.tokenization"} <= seen
    assert wrong == set()


def test_versions_are_pinned_for_whatever_is_declared() -> None:
    """`make install` installs those of constraints.txt, with which the README's results were made."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = {normalize(line.partition("==")[0]) for line in lines if "==" in line}
    extras = PROJECT["optional-dependencies"].keys()
    assert declared(*extras) <= pinned


@pytest.mark.parametrize("choice", ["found", "declined", "absent"])
def test_uv_installs_from_the_indexes_that_pip_is_told_of(tmp_path: Path, choice: str) -> None:
    """Scripts in place of uv and Python log how they are called, and with which indexes."""
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path)
    tool = f'#!/bin/sh\necho "$(basename "$0") $1 $2 $UV_DEFAULT_INDEX $UV_INDEX" >> {tmp_path}/log\n'
    python = (
        tool + f'mkdir -p .venv/bin; cp "$0" .venv/bin/python; [ "$2" = pip ] || exec {sys.executable} "$@"\n'
    )
    for folder, name, text in (("uv", "uv", tool), ("python", "python3", python)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / name).write_text(text)
        (tmp_path / folder / name).chmod(0o755)
    environment = os.environ | {
        "PATH": f"{tmp_path / 'uv'}:{os.environ['PATH']}" if choice != "absent" else "/usr/bin:/bin",
        "PIP_INDEX_URL": "https://a",
        "PIP_EXTRA_INDEX_URL": "https://b https://c",
    }
    command = [
        "make",
        "install",
        f"PYTHON={tmp_path}/python/python3",
        *(["UV="] if choice == "declined" else []),
    ]
    subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, timeout=60, check=False)
    log = (tmp_path / "log").read_text()
    assert ("uv pip install https://a https://b https://c\n" in log) == (choice == "found")
    assert ("python -m pip https:" in log) == (choice != "found")
