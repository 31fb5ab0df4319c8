"""With a thread, training goes on while a checkpoint is written, and never ends before it is."""

import errno
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch
from fsspec.implementations.local import LocalFileSystem  # type: ignore[import-untyped]

from convs2s.train.running import run
from convs2s.train.running.checkpoint import Snapshot, TrainingCheckpoint, read_checkpoint
from convs2s.train.running.checkpoint_writer import CheckpointWriter
from convs2s.train.running.work_folder import WorkFolder
from convs2s.train.training import Training
from tests.train.work_folder.trainings import OUT, WORK, finish, undisturbed, updates_of

pytestmark = pytest.mark.usefixtures("in_thread")
EPOCHS_ONLY: dict[str, Any] = {"checkpoint_updates": 100}
"""Checkpoints after 2, 4, 6, 8 and 10 updates; by default, after each update and each epoch."""


class Disk:
    """Notes what is written; `before` each write, called with its number, it may wait or fail."""

    def __init__(self, patch: pytest.MonkeyPatch, before: Callable[[int], object]) -> None:
        self.number = 0
        self.written = dict[int, TrainingCheckpoint]()
        write = Snapshot.write

        def noted(snapshot: Snapshot, path: Path) -> None:
            self.number += 1
            before(self.number)
            write(snapshot, path)
            self.written[snapshot.updates] = read_checkpoint(path)

        patch.setattr(Snapshot, "write", noted)


def full_at(number: int) -> Callable[[int], None]:
    """Return what fails at this write, slowly."""

    def before(write: int) -> None:
        if write == number:
            time.sleep(0.2)
            raise OSError(errno.ENOSPC, "No space left on device")

    return before


def after_reports(patch: pytest.MonkeyPatch, action: Callable[[Training], object]) -> None:
    """Call an action after each report, when its checkpoint, if any, is begun."""
    original = run.train

    def watched(training: Training) -> Iterator[Any]:
        for report in original(training):
            yield report
            action(training)

    patch.setattr(run, "train", watched)


def test_training_goes_on_while_a_checkpoint_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each holds what the training was at its update, not what it has become; the outputs are the same."""
    wanted = undisturbed(**EPOCHS_ONLY)
    moved_on = threading.Event()
    weights = dict[int, dict[str, torch.Tensor]]()

    def before(write: int) -> None:
        assert write == 5 or moved_on.wait(20)  # the last
        moved_on.clear()

    def act(training: Training) -> None:
        updates = training.state.updates
        weights[updates] = {name: weight.clone() for name, weight in training.model.named_parameters()}
        if updates % 2 and updates > 1:
            moved_on.set()

    disk = Disk(monkeypatch, before)
    after_reports(monkeypatch, act)
    assert finish(**EPOCHS_ONLY) == wanted
    assert [*disk.written] == [2, 4, 6, 8, 10]
    for updates, checkpoint in disk.written.items():
        assert len(checkpoint.state.epochs) == updates / 2
        for name, weight in weights[updates].items():
            assert torch.equal(checkpoint.tensors[f"weights/{name}"], weight), (updates, name)


def test_one_checkpoint_is_written_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next one waits: its tensors are copied to the memory of the last, and older files are removed."""
    begun = list[int]()

    def before(write: int) -> None:
        begun.append(write)
        time.sleep(0.05)
        assert begun[-1] == write

    disk = Disk(monkeypatch, before)
    finish()
    assert [*disk.written] == [*range(1, 11)]


@pytest.mark.parametrize("number", [4, 15], ids=["in the middle", "the last"])
def test_an_error_of_writing_ends_the_training(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a model; the same again completes it."""
    wanted = undisturbed()
    with monkeypatch.context() as patch:
        Disk(patch, full_at(number))
        with pytest.raises(OSError, match="No space left on device"):
            finish()
    assert not OUT.exists()
    assert finish() == wanted


def test_an_error_of_writing_comes_with_the_next_report(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next checkpoint may be due only after thousands of updates."""
    updates = list[int]()

    def act(training: Training) -> None:
        updates.append(training.state.updates)
        for thread in threading.enumerate():
            if thread.name == "checkpoint":
                thread.join()

    Disk(monkeypatch, full_at(1))
    after_reports(monkeypatch, act)
    with pytest.raises(OSError, match="No space left on device"):
        finish(**EPOCHS_ONLY)
    assert updates == [1, 2, 2]  # the last is the epoch's


@pytest.mark.parametrize("is_full", [False, True])
def test_a_training_that_fails_waits_for_its_last_checkpoint(
    is_full: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder's lock must be held as long as anything is written. What failed second is a note."""

    def act(training: Training) -> None:
        if training.state.updates == 1:
            raise FloatingPointError("diverged")

    disk = Disk(monkeypatch, full_at(1) if is_full else lambda _: time.sleep(0.2))
    after_reports(monkeypatch, act)
    with pytest.raises(FloatingPointError) as caught:
        finish()
    assert [*disk.written] == ([] if is_full else [1])
    notes = getattr(caught.value, "__notes__", [])
    assert [("could not be saved" in note, "No space left" in note) for note in notes] == [
        (True,) * 2
    ] * is_full


def test_a_second_ctrl_c_does_not_wait_for_a_checkpoint() -> None:
    """Neither in `wait` nor when the writer is left: copying to another machine may take minutes."""
    joins = list[int]()

    def join() -> None:
        joins.append(len(joins) + 1)
        raise KeyboardInterrupt

    writer = CheckpointWriter(WorkFolder(WORK, {}), None, in_thread=True)
    writer._thread = cast("threading.Thread", SimpleNamespace(join=join))
    with pytest.raises(KeyboardInterrupt), writer:
        writer.wait()
    assert joins == [1]


@pytest.mark.parametrize("is_full", [False, True])
def test_a_signal_ends_training_once_its_checkpoint_is_written(
    is_full: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it cannot be written, the training ends with that error and not as if it were saved."""
    after_reports(monkeypatch, lambda training: signal.raise_signal(signal.SIGTERM))
    disk = Disk(monkeypatch, full_at(1) if is_full else lambda _: time.sleep(0.2))
    with pytest.raises(OSError if is_full else SystemExit):
        finish(**EPOCHS_ONLY)
    assert [*disk.written] == [] if is_full else [*map(updates_of, WORK.glob("*/checkpoint-*"))] == [2]


def test_at_a_signal_a_checkpoint_is_written_before_the_last_one_is_copied(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A place may be slow, and the time until a kill short. Both are copied, one after the other.

    What the first copy still needs is there, though two newer checkpoints are.
    """
    Path("shared").mkdir()
    is_written, copied = threading.Event(), list[int]()
    write, put_file = Snapshot.write, LocalFileSystem.put_file

    def noted(snapshot: Snapshot, path: Path) -> None:
        write(snapshot, path)
        if snapshot.updates == 3:
            is_written.set()

    def slow(place: LocalFileSystem, source: str, target: str) -> None:
        copied.append(updates_of(Path(target)))
        if len(copied) == 1:
            raise OSError(errno.ENOSPC, "No space left on device")
        assert is_written.wait(5)
        time.sleep(0.2)
        assert copied[-1] == updates_of(Path(target))
        put_file(place, source, target)

    def act(training: Training) -> None:
        if training.state.updates == 2:
            signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(Snapshot, "write", noted)
    monkeypatch.setattr(LocalFileSystem, "put_file", slow)
    after_reports(monkeypatch, act)
    with pytest.raises(SystemExit):
        finish(checkpoints="shared", validate_updates=3)
    assert copied == [1, 1, 2, 3]
    assert capsys.readouterr().err.count("Warning") == 1
    for folder in (WORK, Path("shared")):
        assert sorted(map(updates_of, folder.glob("*/checkpoint-*"))) == [1, 2, 3]
