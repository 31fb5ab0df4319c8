"""Check a command line in the documentation without running it, by the program's own parser if it has one.

Each check raises Wrong, which names what does not exist.
"""

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
from pathlib import Path
from typing import Any
from unittest import mock

from dvc.cli import DvcParserError
from dvc.cli.parser import get_main_parser
from ruamel.yaml import YAML

from convs2s import cli
from tests.docs.pages import ROOT

PLACEHOLDERS = {"NAME", "..."}
SYSTEM = {
    "awk", "bash", "cd", "cp", "curl", "cut", "docker", "echo", "export", "git", "grep", "hf", "iconv",
    "install", "kubectl", "mkdir", "rm", "sacrebleu", "sbatch", "scp", "source", "ssh", "systemctl",
    "tensorboard", "xz",
}  # fmt: skip
WRAPPERS = {"sudo": 1, "taskset": 3}
"""Programs that start another, and the number of words before its name."""
Words = list[str]


class Wrong(AssertionError):
    """A command in the documentation would not work."""


class Parsed(Exception):
    """The program's parser has accepted the arguments; its next step would be to run."""


@cache
def params() -> Any:
    """Return the values of params.yaml."""
    return YAML(typ="safe", pure=True).load((ROOT / "params.yaml").read_text(encoding="utf-8"))


def check_param(name: str) -> None:
    """Check that params.yaml has a dotted name; below a null value, any key is accepted."""
    place: Any = params()
    for part in name.split("."):
        if place is None:
            return
        known = dict(enumerate(place)) if isinstance(place, list) else place
        key = int(part) if part.isdigit() else part
        if not isinstance(known, dict) or key not in known:
            raise Wrong(f"params.yaml has no {name}")
        place = known[key]


def check_assignments(text: str) -> None:
    """Check NAME=VALUE pairs of parameters."""
    for pair in text.split():
        check_param(pair.partition("=")[0])


@cache
def code() -> str:
    """Return all code that may read an environment variable."""
    folders = ("pipelines", "convs2s", "deploy", "Makefile")
    files = [file for name in folders for file in [ROOT / name, *(ROOT / name).rglob("*")] if file.is_file()]
    return "\n".join(file.read_text(encoding="utf-8") for file in files if "__pycache__" not in file.parts)


def make(words: Words) -> None:
    """Check targets and variables against the Makefile."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    folders = {"TABLE": "experiments/tables", "NAME": "experiments/presets"}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals and not re.search(rf"^{re.escape(word)}:", makefile, re.MULTILINE):
            raise Wrong(f"the Makefile has no target {word}")
        if equals and f"$({name})" not in makefile:
            raise Wrong(f"the Makefile does not use {name}")
        if name in folders and value not in PLACEHOLDERS | list_names(folders[name]):
            raise Wrong(f"{folders[name]} has no {value}.yaml")
        if name == "SET":
            check_assignments(value)


def list_names(folder: str) -> set[str]:
    """Return the names of the YAML files in a folder."""
    return {path.stem for path in (ROOT / folder).glob("*.yaml")}


def python(words: Words) -> None:
    """Check `python -m MODULE ...`: start the module, and stop it at its parser."""
    _, module, *arguments = words
    spec = importlib.util.find_spec(module)
    if spec is not None and spec.submodule_search_locations:
        spec = importlib.util.find_spec(f"{module}.__main__")
    if spec is None or spec.origin is None:
        raise Wrong(f"there is no module {module} to start")
    origin = spec.origin
    if "argparse" not in (source := Path(origin).read_text(encoding="utf-8")):
        if arguments or "__main__" not in source + spec.name:
            raise Wrong(f"{module} cannot be started with {arguments}")
        return

    def stop(parse: Callable[..., Any]) -> Callable[..., Any]:
        def parse_and_stop(*given: Any) -> Any:
            parse(*given)
            raise Parsed

        return parse_and_stop

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
    except Parsed:
        return
    except (DvcParserError, SystemExit) as ended:
        if not isinstance(ended, SystemExit) or ended.code:
            raise Wrong(f"{line}: {errors.getvalue().strip()}") from ended


def convs2s(words: Words) -> None:
    """Check a command line of `convs2s`; the name with just a command is only a mention."""
    words = [*words, "--help"] if len(words) == 1 else words
    parses(lambda: cli.parser().parse_args(words), f"convs2s {words}")


def dvc(words: Words) -> None:
    """Check a command line of DVC, and the parameters that it sets."""
    parses(lambda: get_main_parser().parse_args(words), f"dvc {words}")
    for flag, assignment in pairwise(words):
        if flag in {"-S", "--set-param"}:
            check_assignments(assignment)


def pip(words: Words) -> None:
    """Check that extras are those of pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for word in words:
        if word.startswith(".[") and word[2:-1] not in project["optional-dependencies"]:
            raise Wrong(f"there is no extra {word}")


def check(command: Words) -> None:
    """Check a simple command.

    Raises:
        Wrong: if it would not work.
    """
    while command and "=" in command[0]:
        if not re.search(rf"\b{command[0].partition('=')[0]}\b", code()):
            raise Wrong(f"nothing reads the environment variable of {command[0]}")
        command = command[1:]
    program, *words = command
    if program in WRAPPERS:
        check(command[WRAPPERS[program] :])
    elif program in SYSTEM:
        for word in words:
            if word.startswith(("deploy/", "experiments/", "params")) and not (ROOT / word).exists():
                raise Wrong(f"there is no {word}")
    else:
        {"make": make, "python": python, "convs2s": convs2s, "dvc": dvc, "pip": pip}[program](words)
