"""Run one stage: `python -m pipelines.stages STAGE --NAME VALUE ...`, as dvc.yaml does.

A stage is a module of this package with a function `run`. Its annotations say where each argument comes from:
a section or a key of params.yaml by its type, and everything else (paths, a seed, a split) from the command
line, by name. So a path that dvc.yaml misspells or omits is an error.
"""

import argparse
import contextlib
import importlib
import operator
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args, get_type_hints

from convs2s.base.messages import TRAINING_MEMORY, report_errors
from convs2s.config.load import load_params
from convs2s.config.params import Params
from convs2s.config.section import Languages, Seeds
from convs2s.config.text import AugmentModels, AugmentText
from convs2s.config.train import StartFrom
from pipelines.stages._declared import unchanged
from pipelines.stages._lifetime import DVC_STAGE, live_with_dvc
from pipelines.stages._models import check_models

SECTIONS: dict[Any, str] = {Params.model_fields[name].annotation: name for name in Params.model_fields}
SECTIONS |= {Languages: "languages", Seeds: "seeds", StartFrom: "train.start_from"}
SECTIONS |= {AugmentModels: "augment.models", AugmentText: "augment.text"}
"""Name of each section of params.yaml, and of single keys, by the annotation of an argument."""

SEARCH = "Lower translate.batch_sentences or translate.beam_size in params.yaml."
IF_MEMORY_RUNS_OUT = {"train": TRAINING_MEMORY, "translate": SEARCH, "tune": SEARCH}
INTERRUPTED = (
    "Run the same command to continue: finished stages are kept, and training resumes at its last checkpoint."
)


def stages() -> list[str]:
    """Return the names of the modules of this package that are stages."""
    return sorted(path.stem for path in Path(__file__).parent.glob("[!_]*.py"))


def annotations(run: Callable[..., None]) -> dict[str, Any]:
    """Return the annotation of each argument of a stage's `run`."""
    return {name: hint for name, hint in get_type_hints(run, include_extras=True).items() if name != "return"}


def member(text: str) -> str:
    """Return the item in DVC's name of a stage, such as 1 in translate@1; other text as it is."""
    return text.rpartition("@")[2]


def seed(text: str) -> int:
    """Return the seed in DVC's name of a stage, such as train@1, or in a number."""
    return int(member(text))


TYPES: dict[type, Callable[[str], Any]] = {int: seed, str: member}
"""How an argument is parsed that is neither a path nor one of several words, by its annotation."""


def parse_arguments(name: str, hints: Mapping[str, Any], arguments: Sequence[str]) -> dict[str, Any]:
    """Parse `--NAME VALUE` for each argument that is no section of params.yaml; all are required."""
    parser = argparse.ArgumentParser(prog=f"python -m pipelines.stages {name}", allow_abbrev=False)
    for argument, hint in hints.items():
        if hint not in SECTIONS:
            choices = get_args(hint) or None  # of a Literal
            kind = str if choices else TYPES.get(hint, hint)
            parser.add_argument(f"--{argument}", required=True, type=kind, choices=choices)
    return vars(parser.parse_args(arguments))


def start(name: str, arguments: Sequence[str]) -> None:
    """Run a stage with these arguments and the values of params.yaml.

    An invalid value is an error in any stage, even if the stage does not use it, so the first one finds it.
    A stage may have a function `finish`, which gets `work` and `seed` if DVC will record its result.
    """
    item = os.environ.get(DVC_STAGE)
    reading = unchanged(item) if item else contextlib.nullcontext(load_params())
    with reading as params:
        check_models(params)
        stage = importlib.import_module(f"pipelines.stages.{name}")  # only now: changes of it are noticed
        hints = annotations(stage.run)
        values = parse_arguments(name, hints, arguments)
        sections = {
            argument: operator.attrgetter(SECTIONS[hint])(params)
            for argument, hint in hints.items()
            if hint in SECTIONS
        }
        stage.run(**values, **sections)
    if item and hasattr(stage, "finish"):
        stage.finish(values["work"], values["seed"])


def main(arguments: Sequence[str]) -> None:
    """Run the stage named by the first argument."""
    parser = argparse.ArgumentParser(prog="python -m pipelines.stages", description="Run one stage.")
    parser.add_argument("stage", choices=stages())
    stage = parser.parse_args(arguments[:1]).stage
    with report_errors(stage, IF_MEMORY_RUNS_OUT.get(stage, "Use a machine with more memory."), INTERRUPTED):
        start(stage, arguments[1:])


if __name__ == "__main__":
    if DVC_STAGE in os.environ:
        live_with_dvc()
    main(sys.argv[1:])
