"""Checkpoints of earlier versions are continued, or kept."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from safetensors import safe_open
from safetensors.torch import save_file

from convs2s.train.export import save
from convs2s.train.setup import build_training
from convs2s.train.training import Training
from convs2s.train.work_folder import WorkFolder
from tests.train.tiny import ALONE, tiny_params
from tests.train.work_folder.moments import Moments, put_back
from tests.train.work_folder.trainings import (
    INPUTS,
    OUT,
    TINY,
    WORK,
    finish,
    interrupt,
    state_of,
    undisturbed,
    validating,
)

pytestmark = pytest.mark.fault("damaged checkpoint")


def make_older(checkpoint: Path, training: Training, wanted: Any) -> None:
    """Rewrite a work folder in the format of versions before 2026-11-22."""
    with safe_open(checkpoint, framework="pt") as file:
        tensors = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118
        metadata = {name: file.metadata()[name] for name in ("state", "fingerprint")}
    own = checkpoint.parent
    folder = WorkFolder(WORK, json.loads(metadata["fingerprint"]))
    assert folder.own == own
    best = folder.best(state_of(checkpoint))
    assert not isinstance(best, Path)
    training.model.load_state_dict(
        {name.removeprefix("weights/"): t for name, t in best.tensors.items() if "weights/" in name}
    )
    save(training, wanted.model, WORK / "best")
    save_file(tensors, WORK / "checkpoint.safetensors", metadata)
    (own / "cost.json").rename(WORK / "cost.json")
    shutil.rmtree(own)
    (WORK / "lock").unlink()


@pytest.mark.parametrize(
    "nats", [[3.0, 2.5, 2.6, 2.7, 2.8], [3.0, 2.5, 2.6, 2.7, 2.3]], ids=["best", "later"]
)
def test_a_checkpoint_of_an_earlier_version_is_continued(
    nats: list[float], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It keeps its best model, if no later epoch is better, and its cost."""
    validating(monkeypatch, nats)
    wanted = undisturbed()
    (newest, *_) = interrupt(monkeypatch, after=7)
    settings = tiny_params(Path(), **TINY)
    make_older(newest, build_training(settings.model, settings.train, 1, *INPUTS, ALONE), settings)
    capsys.readouterr()
    with monkeypatch.context() as patch:
        moments = Moments(patch, WORK, OUT)
        assert finish() == wanted
    message = capsys.readouterr().err
    assert f"{newest} is from an earlier version, without checksums" in message
    assert f"Training continues from {newest}: epoch 4, after 7 updates." in message
    assert [path.name for path in sorted(WORK.iterdir())] == ["costs", "lock"]
    assert len(list((WORK / "costs").iterdir())) == 1
    adopting = [i for i, name in enumerate(moments.names) if name.startswith("rename")][1:3]
    for i in adopting:  # killed after the best model was moved, and then its cost
        put_back(moments.contents[i], WORK, OUT)
        assert (WORK / "checkpoint.safetensors").is_file()
        assert not (WORK / "best").exists()
        assert finish() == wanted
        assert len(list((WORK / "costs").iterdir())) == 1


def test_a_checkpoint_of_an_earlier_version_and_other_settings_is_kept(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It stays where it is."""
    (newest, *_) = interrupt(monkeypatch, after=7)
    settings = tiny_params(Path(), **TINY)
    make_older(newest, build_training(settings.model, settings.train, 1, *INPUTS, ALONE), settings)
    older = WORK / "checkpoint.safetensors"
    content = older.read_bytes()
    finish(learning_rate=0.2, max_epochs=1)
    assert f"since the checkpoint {older} was written" in capsys.readouterr().err
    assert older.read_bytes() == content
    assert (WORK / "best").is_dir()
