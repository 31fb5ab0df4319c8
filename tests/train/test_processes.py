"""A training has a share for each worker; any number of processes up to that makes the same updates."""

import importlib
import json
from pathlib import Path
from typing import Any, Protocol

import pytest
import torch
from safetensors.torch import load_file

from convs2s.train import loop
from convs2s.train.running import run
from convs2s.train.running.run import train_model
from tests.train.forks import launch_forks
from tests.train.tiny import PATHS, tiny_params, tiny_training, write_tiny

SHARES: dict[str, Any] = {
    "workers": 3, "batch_sentences": 2, "max_tokens": 15, "dropout": 0.2, "average": 2,
    "clip_norm": 100.0, "learning_rate": 0.05,
}  # fmt: skip
"""Shares of two sentences, in one part or two; of 37 pairs, the last batch leaves two shares empty.

Gradients are not renormalized, which would hide a wrong divisor.
"""


class Train(Protocol):
    """Trains in a folder, up to an epoch; a later call goes on."""

    def __call__(self, name: str, processes: int | None, epochs: int = 2, **changes: Any) -> None: ...


@pytest.fixture(scope="module", autouse=True)
def _prepared(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Compile and import here what each worker would otherwise, for a minute if all do at once."""
    importlib.import_module("torch._dynamo")  # for DDP
    training = tiny_training(tmp_path_factory.mktemp("prepared"), pairs=8)
    assert next(loop.train(training))


@pytest.fixture
def train(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Train:
    monkeypatch.setattr(run, "launch", launch_forks)

    def call(name: str, processes: int | None, epochs: int = 2, **changes: Any) -> None:
        folder = tmp_path / name
        if not folder.exists():
            folder.mkdir()
            write_tiny(folder, train=37)
        monkeypatch.chdir(folder)
        params = tiny_params(folder, **SHARES, max_epochs=epochs, processes=processes, **changes)
        train_model(params.model, params.train, params.run, 1, *PATHS)

    return call


def compare(one: Path, other: Path) -> float:
    """Return by how much the weights and metrics of two trainings differ at most."""
    weights = [load_file(folder / "out" / "model" / "weights.safetensors") for folder in (one, other)]
    metrics = [json.loads((folder / "out" / "metrics.json").read_text()) for folder in (one, other)]
    differences = [float((weight - weights[1][name]).abs().max()) for name, weight in weights[0].items()]
    differences += [abs(metrics[0][key] - metrics[1][key]) for key in metrics[0] if key != "precision"]
    return max(differences)


def test_a_training_goes_on_with_one_process_and_then_with_three(
    train: Train, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """It ends as if it had had two all the time, or one for each share.

    Of two processes, one has two shares. Dropout masks are those of the shares.
    """
    said = []
    for epochs, processes in ((2, 2), (3, 1), (4, 3)):
        train("moved", processes, epochs)
        said.append([line for line in capfd.readouterr().err.splitlines() if "goes on" in line])
    assert [len(lines) for lines in said] == [0, 1, 1]
    assert said[1][0].startswith("Training had 2 processes and goes on with 1: updates have the same")
    assert said[2][0].startswith("Training had 1 process and goes on with 3: updates have the same")
    for name, number in (("two", 2), ("all", None)):
        train(name, number, epochs=4)
        assert compare(tmp_path / "moved", tmp_path / name) < 2e-6


def test_more_processes_than_workers_are_as_many(train: Train, tmp_path: Path) -> None:
    """So `run` can say what a machine has, whatever is trained there. All is the same to the last bit."""
    train("all", None)
    train("more", 8)
    assert compare(tmp_path / "all", tmp_path / "more") == 0


def test_processes_without_a_share_are_refused(
    train: Train, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """They would compute nothing. A torchrun of one's own may start them."""
    monkeypatch.setattr("tests.train.forks.count_processes", lambda *_: 4)
    with pytest.raises(AssertionError):  # of the first worker's exit status
        train("a", None)
    assert "expected at most 3 processes, one for each worker of train.workers" in capfd.readouterr().err


def test_fewer_gpus_than_workers_can_do(train: Train, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message says how."""
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    with pytest.raises(ValueError, match=r"but only 1 GPU.*set run\.processes to 1, whose updates are"):
        train("a", None)
