"""Run one stage: `python -m pipelines.stages STAGE --NAME VALUE ...`, as dvc.yaml does.

A stage is a module of this package with a function `run`. Its annotations say where each argument comes from:
a section of params.yaml by its class, a single value by its alias in `values`, and everything else (paths, a
seed, a split) from the command line, by name. So a path that dvc.yaml misspells or omits is an error.

An argument can contain the seed: `--seed 1 --out data/trained/{seed}`. dvc.yaml uses this because a seed that
DVC itself inserted into a path would reach the shell unchecked.

With `--snapshot FILE`, values come from params.yaml next to it, and the stage fails if its code is another or
its inputs change (`pipelines.stages._inputs`); otherwise, values come from params.yaml as it is.
"""

import argparse
import contextlib
import importlib
import operator
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

from convs2s.base.messages import TRAINING_MEMORY, report_errors
from convs2s.config.load import load_params
from convs2s.config.params import Params
from pipelines.stages._inputs import guard
from pipelines.stages._lifetime import MARK, live_with_dvc

SECTIONS = {field.annotation: name for name, field in Params.model_fields.items()}
"""Name of each section of params.yaml, by its class."""

SEARCH = "Lower translate.batch_sentences or translate.beam_size in params.yaml."
IF_MEMORY_RUNS_OUT = {"train": TRAINING_MEMORY, "translate": SEARCH, "tune": SEARCH}
INTERRUPTED = (
    "Run the same command to continue: finished stages are kept, and training resumes at its last checkpoint."
)


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


def parse(name: str, expected: Mapping[str, Any], arguments: Sequence[str]) -> dict[str, Any]:
    """Parse `--NAME VALUE` for each argument that does not come from params.yaml; all are required.

    All stages accept `--snapshot`, and `--seed`, whose value replaces {seed} in other arguments.
    """
    parser = argparse.ArgumentParser(prog=f"python -m pipelines.stages {name}", allow_abbrev=False)
    for argument, annotation in expected.items():
        choices = get_args(annotation) if get_origin(annotation) is Literal else None
        kind = str if choices else annotation
        parser.add_argument(f"--{argument}", required=True, type=kind, choices=choices)
    for argument, kind in (("snapshot", Path), ("seed", int)):
        if argument not in expected:
            parser.add_argument(f"--{argument}", type=kind)
    seed = value_of("--seed", arguments)
    return vars(parser.parse_args([word.replace("{seed}", seed or "{seed}") for word in arguments]))


def value_of(name: str, arguments: Sequence[str]) -> str | None:
    """Return the value of an argument in `--NAME VALUE ...`; None if it is not there."""
    return dict(zip(arguments[::2], arguments[1::2], strict=False)).get(name)


def start(name: str, arguments: Sequence[str]) -> None:
    """Run a stage with these arguments and the values of its snapshot, or of params.yaml if it has none.

    Invalid values are an error even for stages that use none of them: it is best found in the first stage.
    A stage may have a function `finish`, which is called if DVC will record its result.
    """
    item, snapshot = os.environ.get(MARK), value_of("--snapshot", arguments)
    inputs = guard(name, item, Path(snapshot)) if snapshot else contextlib.nullcontext(load_params())
    with inputs as params:
        run = load(name)  # only now, as changes of its code are noticed
        hints = annotations(run)
        values = parse(name, {a: hint for a, hint in hints.items() if not keys(hint)}, arguments)
        # For several keys, attrgetter returns a tuple.
        run(
            **{
                a: operator.attrgetter(*of)(params) if (of := keys(h)) else values[a]
                for a, h in hints.items()
            }
        )
    finish = getattr(sys.modules[f"pipelines.stages.{name}"], "finish", None)
    if item and finish:
        finish(**{a: values[a] for a in annotations(finish)})


def main(arguments: Sequence[str]) -> None:
    """Run the stage named by the first argument."""
    parser = argparse.ArgumentParser(prog="python -m pipelines.stages", description="Run one stage.")
    parser.add_argument("stage", choices=stages())
    stage = parser.parse_args(arguments[:1]).stage
    with report_errors(stage, IF_MEMORY_RUNS_OUT.get(stage, "Use a machine with more memory."), INTERRUPTED):
        start(stage, arguments[1:])


if __name__ == "__main__":
    if MARK in os.environ:
        live_with_dvc()
    main(sys.argv[1:])
