"""Tiny trainings in the current folder: whole, interrupted, with given validation losses, damaged."""

import hashlib
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from convs2s.train import loop
from convs2s.train.loop import EpochReport
from convs2s.train.running import run
from convs2s.train.running.run import train_model
from convs2s.train.running.work_folder import remove_ended
from convs2s.train.training import Training
from tests.train.tiny import PATHS, tiny_params
from tests.train.work_folder.moments import Content, content, put_back

EPOCHS, UPDATES = 5, 2  # of a whole training: epochs, and updates in each
TINY: dict[str, Any] = {"layers": 1, "max_tokens": 1000}  # updates of few operations
WORK, OUT = Path("work"), Path("out")
INPUTS = Path("encoded"), Path("vocabulary"), Path("candidates/candidates.npz")
KNOWN: dict[str, dict[str, str]] = {}
LEFT: dict[str, Content] = {}


def finish(code: dict[str, str] | None = None, **changes: Any) -> dict[str, str]:
    """Train to the end, with code of these digests; return the outputs, as hashes by name."""
    wanted = tiny_params(Path(), **TINY | {"max_epochs": EPOCHS, "checkpoint_updates": 1} | changes)
    train_model(wanted.model, wanted.train, wanted.run, 1, *PATHS, code=code or {})
    remove_ended(WORK)
    return {
        str(path): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(OUT.rglob("*"))
        if path.is_file()
    }


def undisturbed(**changes: Any) -> dict[str, str]:
    """Train from the beginning to the end, once for all tests, and leave no trace."""
    key = repr((loop.validation_loss, changes))
    if key not in KNOWN:
        KNOWN[key] = finish(**changes)
        assert [path.name for path in WORK.iterdir()] == ["lock"]
        shutil.rmtree(WORK)
        shutil.rmtree(OUT)
    return KNOWN[key]


class Killed(BaseException):
    """Stands for the death of a process, which no handler can catch."""


def interrupt(monkeypatch: pytest.MonkeyPatch, after: int, **changes: Any) -> list[Path]:
    """Train for `after` updates; return the checkpoints, newest first.

    The result for an empty folder is computed once for all tests.
    """
    key = None if WORK.exists() else repr((loop.validation_loss, after, changes))
    if key in LEFT:
        put_back(LEFT[key], WORK)
    else:
        train_until(after, monkeypatch, **changes)
    if key:
        LEFT[key] = content(WORK)
    return sorted(WORK.glob("*/checkpoint-*"), key=updates_of, reverse=True)


def train_until(after: int, monkeypatch: pytest.MonkeyPatch, **changes: Any) -> None:
    """Train for `after` updates, and validate if they complete an epoch."""
    original = loop.train

    def interrupted(training: Training) -> Iterator[Any]:
        for report in original(training):
            yield report
            epoch_is_complete = after % UPDATES == 0  # its last update is followed by the epoch's report
            validated = isinstance(report, EpochReport)
            if training.state.updates == after and (validated or not epoch_is_complete):
                raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(run, "train", interrupted)
        with pytest.raises(Killed):
            finish(**changes)


def updates_of(checkpoint: Path) -> int:
    return int(checkpoint.stem.removeprefix("checkpoint-"))


def cut(path: Path) -> None:
    """Truncate a file in its middle."""
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


@dataclass(frozen=True)
class Given:
    """Replaces `validation_loss`."""

    nats: list[float]

    def __call__(self, training: Training) -> float:
        return self.nats[len(training.state.epochs)]


def validating(monkeypatch: pytest.MonkeyPatch, nats: list[float]) -> None:
    """Give each epoch a fixed validation loss, whichever epoch a training resumes in."""
    monkeypatch.setattr(loop, "validation_loss", Given(nats))
