"""Check a command line in the documentation without running it, by the program's own parser if it has one.

Each check raises Wrong, which names what does not exist.
"""

import argparse
import contextlib
import importlib.util
import io
import re
import runpy
import signal
import subprocess
import sys
import tomllib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

from dvc.cli import DvcParserError
from dvc.cli.parser import get_main_parser
from ruamel.yaml import YAML
from sacrebleu.dataset import DATASETS

from convs2s import cli
from tests.docs.pages import ROOT

PLACEHOLDERS = {"NAME", "..."}
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
        if not isinstance(place, dict) or part not in place:
            raise Wrong(f"params.yaml has no {name}")
        place = place[part]


def check_assignments(text: str) -> None:
    """Check NAME=VALUE pairs of parameters."""
    for pair in text.split():
        name, equals, _ = pair.partition("=")
        if not equals:
            raise Wrong(f"{pair} is not NAME=VALUE")
        check_param(name)


@cache
def environment_variables() -> str:
    """Return all code that may read an environment variable."""
    folders = ("pipelines", "convs2s", "deploy", "Makefile")
    files = [file for name in folders for file in [ROOT / name, *(ROOT / name).rglob("*")] if file.is_file()]
    return "\n".join(file.read_text(encoding="utf-8") for file in files if "__pycache__" not in file.parts)


def check_variable(assignment: str) -> None:
    """Check that some code reads an environment variable."""
    name = assignment.partition("=")[0]
    if not re.search(rf"\b{name}\b", environment_variables()):
        raise Wrong(f"nothing reads the environment variable {name}")


def make(words: Words) -> None:
    """Check targets and variables against the Makefile, and let make parse the line."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    folders = {"TABLE": "experiments/tables", "NAME": "experiments/presets"}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals and not re.search(rf"^{re.escape(word)}:", makefile, re.MULTILINE):
            raise Wrong(f"the Makefile has no target {word}")
        if equals and f"$({name})" not in makefile:
            raise Wrong(f"the Makefile does not use {name}")
        if (
            name in folders
            and value not in PLACEHOLDERS
            and not (ROOT / folders[name] / f"{value}.yaml").is_file()
        ):
            raise Wrong(f"{folders[name]} has no {value}.yaml")
        if name == "SET":
            check_assignments(value)
    done = subprocess.run(["make", "-n", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Wrong(f"make: {done.stderr.strip()}")


def python(words: Words) -> None:
    """Check `python -m MODULE ...`: start the module, and stop it at its parser."""
    flag, module, *arguments = words
    if flag != "-m":
        raise Wrong(f"python {flag}: wanted python -m MODULE")
    try:
        spec = importlib.util.find_spec(module)
        if spec is not None and spec.submodule_search_locations:
            spec = importlib.util.find_spec(f"{module}.__main__")
    except ModuleNotFoundError:
        spec = None
    if spec is None or spec.origin is None:
        raise Wrong(f"there is no module {module} to start")
    source = Path(spec.origin).read_text(encoding="utf-8")
    if "__main__" not in source and not module.endswith("__main__") and not spec.name.endswith("__main__"):
        raise Wrong(f"{module} does nothing when it is started")
    if "argparse" not in source:
        if arguments:
            raise Wrong(f"{module} has no parser for {arguments}")
        return
    stopped_at_parser(lambda: runpy.run_module(module, run_name="__main__"), [module, *arguments])


def stopped_at_parser(start: Callable[[], object], arguments: Words) -> None:
    """Start a program that parses sys.argv; stop it as soon as it has done so."""

    def stopping(parse: Callable[..., Any]) -> Callable[..., Any]:
        def parse_and_stop(self: argparse.ArgumentParser, args: Any = None, namespace: Any = None) -> Any:
            parse(self, args, namespace)
            raise Parsed

        return parse_and_stop

    parser, errors = argparse.ArgumentParser, io.StringIO()
    with (
        mock.patch.object(parser, "parse_args", stopping(parser.parse_args)),
        mock.patch.object(parser, "parse_intermixed_args", stopping(parser.parse_intermixed_args)),
        mock.patch.object(sys, "argv", arguments),
        contextlib.redirect_stderr(errors),
    ):
        try:
            start()
        except Parsed:
            return
        except SystemExit as ended:
            raise Wrong(f"{' '.join(arguments)}: {errors.getvalue().strip()}") from ended
    raise Wrong(f"{arguments[0]} did not parse its arguments")


def convs2s(words: Words) -> None:
    """Check a command line of `convs2s`; the name with just a command is only a mention."""
    if len(words) == 1:
        words = [*words, "--help"]
    errors = io.StringIO()
    try:
        with contextlib.redirect_stderr(errors), contextlib.redirect_stdout(io.StringIO()):
            cli.parser().parse_args(words)
    except SystemExit as ended:
        if ended.code:
            raise Wrong(f"convs2s {' '.join(words)}: {errors.getvalue().strip()}") from ended


def dvc(words: Words) -> None:
    """Check a command line of DVC, and the parameters that it sets."""
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            options = get_main_parser().parse_args(words)
    except (DvcParserError, SystemExit) as error:
        raise Wrong(f"dvc {' '.join(words)}: not a command line of DVC") from error
    for assignment in getattr(options, "set_param", None) or ():
        check_assignments(assignment)


def git(words: Words) -> None:
    """Check the subcommand, and that files to add exist (dvc.lock comes with the first run)."""
    command, *arguments = words
    if command not in {"add", "commit", "checkout", "restore"}:
        raise Wrong(f"git {command}: not among the commands that the documentation uses")
    for name in arguments if command == "add" else ():
        if name != "dvc.lock" and not (ROOT / name).exists():
            raise Wrong(f"git add {name}: there is no such file")


def pip(words: Words) -> None:
    """Check that extras are those of pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    allowed = {f".[{extra}]" for extra in project["optional-dependencies"]} | {"dvc-s3", "dvc-ssh"}
    command, *packages = [word for word in words if word != "-e"]
    if command != "install" or not set(packages) <= allowed:
        raise Wrong(f"pip {' '.join(words)}: wanted to install some of {', '.join(sorted(allowed))}")


def sacrebleu(words: Words) -> None:
    """Check the options, and that the test set exists."""
    before = signal.getsignal(signal.SIGPIPE)
    from sacrebleu.sacrebleu import parse_args  # noqa: PLC0415  # its module is a command line

    signal.signal(signal.SIGPIPE, before)  # the import has made a broken pipe end this process silently
    stopped_at_parser(parse_args, ["sacrebleu", *words])
    name, pair = words[words.index("-t") + 1], words[words.index("-l") + 1]
    if name not in DATASETS or pair not in DATASETS[name].langpairs:
        raise Wrong(f"sacreBLEU has no test set {name} for {pair}")


def export(words: Words) -> None:
    """Check environment variables."""
    for word in words:
        check_variable(word)


def systemctl(words: Words) -> None:
    """Check that deploy/ has the units."""
    for word in words:
        unit = re.sub(r"@.*", "@", word)
        if unit.startswith("convs2s") and not (ROOT / "deploy" / f"{unit}.service").is_file():
            raise Wrong(f"deploy/ has no {unit}.service")


def system_program(words: Words) -> None:
    """Check that files of the project exist; the program is the system's."""
    for word in words:
        if word.startswith(("deploy/", "experiments/")) and not (ROOT / word).exists():
            raise Wrong(f"there is no {word}")


CHECKS: dict[str, Callable[[Words], None]] = {
    **{
        check.__name__: check
        for check in (make, python, convs2s, dvc, git, pip, sacrebleu, export, systemctl)
    },
    **dict.fromkeys(("cp", "docker", "echo", "hf", "iconv", "install", "mkdir", "sbatch"), system_program),
    **dict.fromkeys(("rm", "scp", "source", "ssh"), system_program),
}
WRAPPERS = {"sudo": 1, "taskset": 3}
"""Programs that start another, and the number of words before its name."""


def check(command: Words) -> None:
    """Check a simple command.

    Raises:
        Wrong: if it would not work.
    """
    while command and re.match(r"\w+=", command[0]):
        check_variable(command[0])
        command = command[1:]
    program, *words = command
    if program in WRAPPERS:
        check(command[WRAPPERS[program] :])
    elif program in CHECKS:
        CHECKS[program](words)
    else:
        raise Wrong(f"{program}: no check knows this program; add one to tests/docs/commands.py")
