"""Check a command line in the documentation without running it, by the program's own parser if it has one."""

import argparse
import contextlib
import importlib.util
import io
import re
import runpy
import sys
import tomllib
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from typing import Any
from unittest import mock

from dvc.cli import DvcParserError
from dvc.cli.parser import get_main_parser
from ruamel.yaml import YAML

from convs2s import cli
from tests.docs.pages import ROOT

PLACEHOLDERS = {"NAME", "..."}
SYSTEM = {
    "awk", "bash", "cd", "chroot", "cp", "createdb", "curl", "cut", "debootstrap", "docker", "dos2unix",
    "echo", "export", "git", "grep", "hf", "iconv", "install", "kubectl", "ln", "mkdir", "mount",
    "pandoc", "prefect", "python3", "rm", "sacrebleu", "sbatch", "scp", "sed", "source", "ssh",
    "systemctl", "tar", "tensorboard", "xz",
}  # fmt: skip
WRAPPERS = {"sudo": 1, "taskset": 3}  # programs that start another, and the number of words before its name
Words = list[str]


@cache
def params() -> Any:
    """Return the values of params.yaml."""
    return YAML(typ="safe", pure=True).load((ROOT / "params.yaml").read_text(encoding="utf-8"))


def check_param(assignment: str) -> None:
    """Check that params.yaml has the dotted name of NAME=VALUE; below a null value, any key is accepted."""
    name = assignment.partition("=")[0]
    place = params()
    for part in name.split("."):
        if place is None:
            return
        place = place[int(part) if part.isdigit() else part]


def make(words: Words) -> None:
    """Check targets and variables against the Makefile."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    folders = {"TABLE": "experiments/tables", "NAME": "experiments/presets"}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals and not re.search(rf"^{re.escape(word)}:", makefile, re.MULTILINE):
            raise AssertionError(f"the Makefile has no target {word}")
        if equals and f"$({name})" not in makefile:
            raise AssertionError(f"the Makefile does not use {name}")
        names = {path.stem for path in (ROOT / folders.get(name, "")).glob("*.yaml")}
        if name in folders and value not in PLACEHOLDERS | names:
            raise AssertionError(f"{folders[name]} has no {value}.yaml")
        if name == "SET":
            for assignment in value.split():
                check_param(assignment)


@cache
def options() -> set[str]:
    """Return the options of all commands of DVC and of `convs2s`."""
    parsers = [get_main_parser(), cli.parser()]
    names = set[str]()
    while parsers:
        for action in parsers.pop()._actions:
            names.update(action.option_strings)
            if isinstance(action, argparse._SubParsersAction):
                parsers.extend(action.choices.values())
    return names


def python(words: Words) -> None:
    """Check `python -m MODULE ...`: start the module, and stop it at its parser."""
    flag, module, *arguments = words
    if flag == "-c":
        compile(module, "python -c", "exec")
        return
    if module == "pytest":
        assert all((ROOT / word).exists() for word in arguments if word.startswith("tests/")), arguments
        return
    spec = importlib.util.find_spec(module)
    if spec is not None and spec.submodule_search_locations:
        spec = importlib.util.find_spec(f"{module}.__main__")
    assert spec is not None and spec.origin is not None, f"there is no module {module} to start"
    origin = spec.origin

    def stop(parse: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *arguments: sys.exit(parse(*arguments) is None)

    if not arguments:
        return
    parser = argparse.ArgumentParser
    with (
        mock.patch.object(parser, "parse_args", stop(parser.parse_args)),
        mock.patch.object(parser, "parse_intermixed_args", stop(parser.parse_intermixed_args)),
        mock.patch.object(sys, "argv", [module, *arguments]),
    ):
        parses(lambda: runpy.run_path(origin, run_name="__main__"), f"{module} {arguments}")


def parses(parse: Callable[[], object], line: str) -> None:
    """Check that a parser accepts its arguments."""
    errors = io.StringIO()
    try:
        with contextlib.redirect_stderr(errors), contextlib.redirect_stdout(io.StringIO()):
            parse()
    except (DvcParserError, SystemExit) as ended:
        if not isinstance(ended, SystemExit) or ended.code:
            raise AssertionError(f"{line}: {errors.getvalue().strip()}") from ended


def convs2s(words: Words) -> None:
    """Check a command line of `convs2s`; the name with just a command is only a mention."""
    parses(lambda: cli.parser().parse_args(words if words[1:] else [*words, "--help"]), f"convs2s {words}")


def dvc(words: Words) -> None:
    """Check a command line of DVC, and the parameters that it sets."""
    parses(lambda: get_main_parser().parse_args(words), f"dvc {words}")
    for flag, assignment in pairwise(words):
        if flag in {"-S", "--set-param"}:
            check_param(assignment)


def pip(words: Words) -> None:
    """Check that extras are those of pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = {word[2:-1] for word in words if word.startswith(".[")}
    assert extras <= project["optional-dependencies"].keys(), extras


def check(command: Words) -> None:
    """Check a simple command."""
    while "=" in command[0]:  # an environment variable
        command = command[1:]
    program, *words = command
    if program in WRAPPERS:
        check(command[WRAPPERS[program] :])
    elif program in SYSTEM:
        paths = [word for word in words if word.startswith(("deploy/", "experiments/", "params"))]
        assert all((ROOT / path).exists() for path in paths), paths
    else:
        {"make": make, "python": python, "convs2s": convs2s, "dvc": dvc, "pip": pip}[program](words)
