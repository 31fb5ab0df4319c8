"""Run one stage: `python -m pipelines.stages STAGE --NAME VALUE ...`, as dvc.yaml does.

A stage is a module of this package with a function `run`. Its annotations say where each argument comes from:
a section of params.yaml by its class, a single value by its alias in `values`, and everything else (paths, a
seed, a split) from the command line, by name. So a path that dvc.yaml misspells or omits is an error.

An argument can contain the value of another: `--seed 1 --out data/trained/{seed}`. dvc.yaml uses this because
a seed that DVC itself inserted into a path would reach the shell unchecked.

With `--snapshot FILE`, values come from params.yaml next to it, and the stage fails if its code is another or
its inputs change (`pipelines.stages._inputs`); otherwise, values come from params.yaml as it is.
"""

import argparse
import functools
import importlib
import itertools
import os
import re
import sys
from collections.abc import Callable, Container, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

from convs2s.config.load import load_params
from convs2s.config.params import Params
from convs2s.messages import TRAINING_MEMORY, reported
from pipelines.stages._inputs import unchanged
from pipelines.stages._lifetime import MARK, live_with_dvc

SECTIONS = {field.annotation: name for name, field in Params.model_fields.items()}
"""Name of each section of params.yaml, by its class."""

SEARCH = "Lower translate.batch_sentences or translate.beam_size in params.yaml."
IF_MEMORY_RUNS_OUT = {
    "train": TRAINING_MEMORY,
    "translate": SEARCH,
    "tune": SEARCH,
}
INTERRUPTED = (
    "Run the same command to continue: finished stages are kept, and training resumes at its last checkpoint."
)
PLACE = re.compile(r"\{(\w+)\}")


def stages() -> dict[str, Path]:
    """Return the modules of this package that are stages, by name."""
    folder = Path(__file__).parent
    return {path.stem: path for path in sorted(folder.glob("[!_]*.py")) if path.stem != "values"}


def load(name: str) -> Callable[..., None]:
    """Return the function `run` of a stage."""
    run: Callable[..., None] = importlib.import_module(f"pipelines.stages.{name}").run
    return run


def keys(annotation: Any) -> tuple[str, ...]:
    """Return the keys of params.yaml that fill an argument; none if it comes from the command line."""
    if annotation in SECTIONS:
        return (SECTIONS[annotation],)
    return tuple(key for key in getattr(annotation, "__metadata__", ()) if isinstance(key, str))


def annotations(run: Callable[..., None]) -> dict[str, Any]:
    """Return the annotation of each argument of a stage's `run`."""
    hints = get_type_hints(run, include_extras=True)
    return {name: hint for name, hint in hints.items() if name != "return"}


def look_up(params: Params, names: Sequence[str]) -> Any:
    """Return the value of a dotted key of params.yaml, or a tuple of several."""
    values = []
    for name in names:
        value: Any = params
        for key in name.split("."):
            value = getattr(value, key)
        values.append(value)
    return tuple(values) if len(values) > 1 else values[0]


def command_line(name: str, wanted: Mapping[str, Any], arguments: Sequence[str]) -> dict[str, Any]:
    """Parse `--NAME VALUE` for each argument that does not come from params.yaml; all are required."""
    parser = argparse.ArgumentParser(prog=f"python -m pipelines.stages {name}", allow_abbrev=False)
    try:
        arguments = filled(arguments, wanted)
    except ValueError as error:
        parser.error(str(error))
    for argument, annotation in wanted.items():
        choices = get_args(annotation) if get_origin(annotation) is Literal else None
        kind = str if choices else annotation
        parser.add_argument(f"--{argument}", required=True, type=kind, choices=choices)
    return vars(parser.parse_args(arguments))


def filled(arguments: Sequence[str], wanted: Container[str]) -> list[str]:
    """Replace each {NAME} in `--NAME VALUE ...`; drop arguments used for this that the stage does not take.

    Args:
        wanted: names that the stage takes.

    Raises:
        ValueError: if a value to insert has anything but letters, digits and underscores.
    """
    pairs = list(itertools.zip_longest(arguments[::2], arguments[1::2]))
    given = {name.removeprefix("--"): value for name, value in pairs if value is not None}
    used = {name for value in given.values() for name in PLACE.findall(value)} & given.keys()
    for name in used:
        if not re.fullmatch(r"\w+", given[name]):
            raise ValueError(f"argument --{name}: found {given[name]!r}, wanted letters and digits only")
    kept = [pair for pair in pairs if pair[0].removeprefix("--") not in used or pair[0][2:] in wanted]
    return [
        PLACE.sub(lambda place: given.get(place[1], place[0]), word)
        for pair in kept
        for word in pair
        if word is not None
    ]


def start(name: str, arguments: Sequence[str]) -> None:
    """Run a stage with these arguments and the values of its snapshot, or of params.yaml if it has none.

    Invalid values are an error even for stages that use none of them: it is best found in the first stage.
    A stage may have a function `finish`, which is called if DVC will record its result.
    """
    if "--snapshot" not in arguments[:-1:2]:
        call(name, arguments, load_params())
        return
    item, snapshot = os.environ.get(MARK), Path(arguments[arguments.index("--snapshot") + 1])
    with unchanged(name, item, snapshot) as params:
        finish = call(name, arguments, params)
    if item:
        finish()


def call(name: str, arguments: Sequence[str], params: Params) -> Callable[[], None]:
    """Call a stage's `run` with its arguments; return its `finish`, with those that it takes."""
    run = load(name)
    wanted, arguments = annotations(run), list(arguments)
    if "--snapshot" in arguments and "snapshot" not in wanted:
        place = arguments.index("--snapshot")
        del arguments[place : place + 2]
    values = command_line(name, {a: hint for a, hint in wanted.items() if not keys(hint)}, arguments)
    run(**values, **{a: look_up(params, keys(hint)) for a, hint in wanted.items() if keys(hint)})
    finish = getattr(sys.modules[f"pipelines.stages.{name}"], "finish", lambda: None)
    return functools.partial(finish, **{a: values[a] for a in annotations(finish)})


def main(arguments: Sequence[str]) -> None:
    """Run the stage named by the first argument."""
    parser = argparse.ArgumentParser(prog="python -m pipelines.stages", description="Run one stage.")
    parser.add_argument("stage", choices=stages())
    stage = parser.parse_args(arguments[:1]).stage
    with reported(stage, IF_MEMORY_RUNS_OUT.get(stage, "Use a machine with more memory."), INTERRUPTED):
        start(stage, arguments[1:])


if __name__ == "__main__":
    if MARK in os.environ:
        live_with_dvc()
    main(sys.argv[1:])
