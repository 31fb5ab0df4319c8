"""A model folder and a checkpoint of each format, with what they gave when they were made: see README.md.

`python -m tests.golden.states NAME` makes those of the code as it is.
"""

import contextlib
import dataclasses
import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import MISSING
from pathlib import Path
from typing import Any

import torch
from pydantic.fields import FieldInfo

from convs2s.base.files import write_json
from convs2s.config import format as formats
from convs2s.config.faults import models_in
from convs2s.config.model import ModelParams
from convs2s.config.params import Params
from convs2s.config.train import RunSection, TrainParams
from convs2s.model.description import Description
from convs2s.model.storage import load_model
from convs2s.package.facts import Facts
from convs2s.package.folder import TokenizerFile, TranslateFile
from convs2s.package.translator import load
from convs2s.train.loop import EpochReport, UpdateReport, train, validation_loss
from convs2s.train.running.checkpoint import save_checkpoint
from convs2s.train.running.job import Job, training_fingerprint
from convs2s.train.running.work_folder import WorkFolder
from convs2s.train.setup import build_training
from convs2s.train.training import State, Training
from tests.package.small_package import write_small_package
from tests.train.tiny import ALONE, PATHS, tiny_params, write_tiny

SCHEMAS: dict[str, type] = {
    "params.yaml": Params,
    "model.json": Description,
    "tokenizer.json": TokenizerFile,
    "translate.json": TranslateFile,
    "facts.json": Facts,
    "checkpoint": State,
}
FOLDER = Path(__file__).parent
SENTENCES = ["Das ist ein Haus.", "Hund und Maus", "noch eins, aus der Maus"]
SOURCE = [5, 9, 14, 7, 1]
TARGET = [1, 8, 20, 11]


def names() -> list[str]:
    """Return the names of all states, in alphabetical order."""
    return sorted(path.parent.name for path in FOLDER.glob("*/results.json"))


def list_keys(schema: type, prefix: str = "") -> dict[str, Any]:
    """Return the fields of a schema and of the schemas in it, by dotted key."""
    if dataclasses.is_dataclass(schema):
        return {field.name: field for field in dataclasses.fields(schema)}
    keys: dict[str, Any] = {}
    for name, field in schema.model_fields.items():  # type: ignore[attr-defined]
        keys[prefix + name] = field
        for model in models_in(field.annotation):
            keys |= list_keys(model, f"{prefix}{name}.")
    return keys


def find_faults(state: str) -> list[str]:
    """Return a message for each key that files of a state lack, and that was added without a word on them."""
    recorded = json.loads((FOLDER / state / "keys.json").read_text(encoding="utf-8"))
    return sorted(
        fault
        for file, schema in SCHEMAS.items()
        for fault in compare(file, recorded[file], list_keys(schema), state.removeprefix("format-"))
    )


def compare(file: str, recorded: list[str], keys: dict[str, Any], form: str) -> Iterator[str]:
    """Yield a message for each fault of a file's keys; it had the recorded ones in this format."""
    yield from (f"{file} had {key}: such files must still be read" for key in recorded if key not in keys)
    for key in keys.keys() - {*recorded}:
        field = keys[key]
        since = formats.FORMAT
        if isinstance(field, FieldInfo):
            is_required = field.is_required()
            since = str((field.json_schema_extra or {}).get("since", since))  # type: ignore[union-attr]
        else:
            is_required = field.default is MISSING and field.default_factory is MISSING
        if is_required:
            yield (
                f"{file} has gained {key}, which older files lack. State what that means where the key is "
                "defined: in a section, later(value, since=VERSION); elsewhere, a default"
            )
        elif file != "params.yaml" and formats.newest([form, since]) == form:
            yield (
                f"{file} has gained {key}, and versions that read format {form} refuse or overlook it. In a "
                "section, define it with later(value, since=VERSION), VERSION being the first that has it; "
                "elsewhere, raise FORMAT in convs2s/config/format.py to that version"
            )


def prepare(work: Path, sections: dict[str, Any]) -> tuple[Training, WorkFolder]:
    """Write the tiny corpus to the current folder; return a training on it, and its work folder."""
    write_tiny(Path(), 60)
    model = ModelParams.model_validate(sections["model"])
    params = TrainParams.model_validate(sections["train"])
    job = Job(model, params, RunSection.model_validate(sections["run"]), 1, *PATHS, {}, "")
    training = build_training(model, params, 1, job.encoded, job.vocabulary, job.table, ALONE)
    return training, WorkFolder(work, training_fingerprint(job, 1))


@contextlib.contextmanager
def in_temporary_folder() -> Iterator[None]:
    """Work in a new folder, to which the paths of a training, part of its fingerprint, are relative."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        yield


def results_of(folder: Path) -> dict[str, Any]:
    """Return what the model folder and the checkpoint of a state give with the code as it is."""
    translator = load(folder / "model", "cpu", precision="float32")
    translations = [best for best, *_ in translator.translate_n_best(SENTENCES)]
    model = load_model(folder / "model")
    logits, attention = model(torch.tensor([SOURCE]), torch.tensor([TARGET]))
    sections = json.loads((folder / "params.json").read_text(encoding="utf-8"))
    with in_temporary_folder():
        shutil.copytree(folder / "checkpoints", "copied")
        training, work = prepare(Path("copied"), sections)
        said = work.resume(training)
        state = dataclasses.asdict(training.state)
        nats = validation_loss(training)
        update = next(report for report in train(training) if isinstance(report, UpdateReport))
    return {
        "translations": [translation.text for translation in translations],
        "scores": [translation.score for translation in translations],
        "logits": logits[0].tolist(),
        "attention": attention[0].tolist(),
        "resumed": said.partition(": ")[2],
        "state": state,
        "validation_loss": nats,
        "next_loss": update.loss,
        "next_gradient_norm": update.gradient_norm,
    }


def make(folder: Path) -> None:
    """Write a model folder, a checkpoint after an epoch, the sections of its training, and the results."""
    folder.mkdir()
    with in_temporary_folder():
        write_small_package(Path(), phase=11.0).rename(folder / "model")
        # Without dropout, as recorded numbers never rest on a seed; the weights are in the checkpoint.
        params = tiny_params(Path(), layers=1, dropout=0.0)
        sections = {name: getattr(params, name).model_dump(mode="json") for name in ("model", "train", "run")}
        training, work = prepare(folder / "checkpoints", sections)
        next(report for report in train(training) if isinstance(report, EpochReport))
        save_checkpoint(work.checkpoint(training.state.updates), training, work.prints)
    write_json(folder / "params.json", sections)
    write_json(folder / "keys.json", {file: sorted(list_keys(schema)) for file, schema in SCHEMAS.items()})
    write_json(folder / "results.json", results_of(folder))


if __name__ == "__main__":
    make(FOLDER / sys.argv[1])
