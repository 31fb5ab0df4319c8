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
from pathlib import Path
from typing import Any

import torch

from convs2s.base.files import write_json
from convs2s.config.model import ModelParams
from convs2s.config.train import RunSection, TrainParams
from convs2s.model.storage import load_model
from convs2s.package.translator import load
from convs2s.train.checkpoint import save_checkpoint
from convs2s.train.job import Job, training_fingerprint
from convs2s.train.loop import EpochReport, UpdateReport, train, validation_loss
from convs2s.train.setup import build_training
from convs2s.train.training import Training
from convs2s.train.work_folder import WorkFolder
from tests.package.small_package import write_small_package
from tests.train.tiny import ALONE, PATHS, tiny_params, write_tiny

FOLDER = Path(__file__).parent
SENTENCES = ["Das ist ein Haus.", "Hund und Maus", "noch eins, aus der Maus"]
SOURCE, TARGET = [5, 9, 14, 7, 1], [1, 8, 20, 11]


def names() -> list[str]:
    """Return the names of all states, in alphabetical order."""
    return sorted(path.parent.name for path in FOLDER.glob("*/results.json"))


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
    """Work in a new folder: the paths of a training, which are part of its fingerprint, are relative to it."""
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
    write_json(folder / "results.json", results_of(folder))


if __name__ == "__main__":
    make(FOLDER / sys.argv[1])
