"""Checkpoints travel: a training moves between work folders by way of a place that all see."""

import errno
import itertools
import os
import re
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import fsspec  # type: ignore[import-untyped]
import pytest
from fsspec.implementations.local import LocalFileSystem  # type: ignore[import-untyped]

from convs2s.train.running import follow, run
from convs2s.train.running.checkpoint_copies import CheckpointCopies
from convs2s.train.training import Training
from tests.train.work_folder import trainings
from tests.train.work_folder.moments import Content, content, put_back
from tests.train.work_folder.trainings import OUT, WORK, cut, finish, interrupt, undisturbed, updates_of

SHARED = Path("shared")


@pytest.fixture(autouse=True)
def _shared(tmp_path: Path) -> None:
    SHARED.mkdir()


def list_copies() -> list[int]:
    return sorted(map(updates_of, SHARED.glob("*/checkpoint-*")))


@pytest.mark.parametrize(
    ("address", "recipe"),
    [("shared", {}), ("memory://shared", {"average": 2, "optimizer": "adam"})],
    ids=["paper", "recipe"],
)
def test_a_training_moved_three_times_ends_as_if_it_had_stayed(
    address: str, recipe: dict[str, Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It moves between two machines, and comes back to the first one, which has old checkpoints.

    The newest ones are in the common place, of which nothing is left in the end.
    """
    wanted = undisturbed(**recipe)
    for after in (3, 5, 8):
        trainings.train_until(after, monkeypatch, checkpoints=address, **recipe)
        if address == "shared":  # the last two, and the best epochs
            assert list_copies() == sorted(map(updates_of, WORK.glob("*/checkpoint-*")))
        if Path("other").exists():
            Path("other").rename("third")
        WORK.rename("other")
        if Path("third").exists():
            Path("third").rename(WORK)
    capsys.readouterr()
    assert finish(checkpoints=address, **recipe) == wanted
    said = capsys.readouterr().err
    assert "The checkpoints are copied from" in said and "epoch 5, after 8 updates." in said
    fs, root = fsspec.url_to_fs(address)
    assert fs.find(root) == []


def test_an_unfinished_copy_costs_only_updates(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A place may write a file under its final name bit by bit, so a kill can leave half of it there.

    The checkpoint before it is used.
    """
    wanted = undisturbed()
    trainings.train_until(6, monkeypatch, checkpoints="shared")
    shutil.rmtree(WORK)
    cut(next(SHARED.glob("*/checkpoint-6.*")))
    assert finish(checkpoints="shared") == wanted
    assert "epoch 3, after 5 updates." in capsys.readouterr().err


def test_only_checkpoints_are_copied_from_a_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others can write there; a name such as .. would be a path in the work folder."""
    trainings.train_until(6, monkeypatch, checkpoints="shared")
    shutil.rmtree(WORK)
    for folder in SHARED.iterdir():
        (folder / "other.safetensors").touch()
        (folder / "deep").mkdir()
    place = CheckpointCopies("shared", WORK / next(SHARED.iterdir()).name)
    place.own.mkdir(parents=True)
    assert "copied from" in place.fetch([])
    assert {path.name.partition("-")[0] for path in place.own.iterdir()} == {"checkpoint"}


def test_a_training_killed_at_any_copy_goes_on_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the place holds at a moment, another machine ends as an undisturbed training."""
    wanted = undisturbed()
    seen = list[Content]()

    def watched(operation: Callable[..., None]) -> Callable[..., None]:
        def call(*paths: Any) -> None:
            seen.append(content(SHARED))
            operation(*paths)
            copy = Path(os.path.relpath(paths[-1]))
            if copy.is_file():  # halfway through the copy
                seen.append({**content(SHARED), copy: copy.read_bytes()[: copy.stat().st_size // 2]})

        return call

    with monkeypatch.context() as patch:
        for name in ("put_file", "rm_file"):
            patch.setattr(LocalFileSystem, name, watched(getattr(LocalFileSystem, name)))
        finish(checkpoints="shared")
    assert len(seen) > 30
    for found in seen[::5]:
        shutil.rmtree(WORK)
        put_back(found, SHARED)
        assert finish(checkpoints="shared") == wanted


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("missing", "No such file or directory"),
        ("gopher://x", "Protocol not known: gopher"),
        ("oss://bucket", "[Ii]nstall"),
    ],
)
def test_a_place_that_cannot_be_used_is_refused_at_the_start(address: str, message: str) -> None:
    """A training that found out only later could run for days without a copy."""
    with pytest.raises(OSError, match=rf"run\.checkpoints: {address}/\w+ cannot be used: .*{message}"):
        finish(checkpoints=address)
    assert not OUT.exists()


@pytest.mark.parametrize("fault", ["No space left", "No such file or directory"])
def test_a_place_that_fails_in_the_middle_is_only_a_warning(
    fault: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The work folder still has every checkpoint, so the training goes on.

    Once the place works again, the next checkpoint is copied, with the best one before it.
    """
    wanted = undisturbed()
    train = run.train

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch, monkeypatch.context() as breaking:

        def failing(training: Training) -> Iterator[Any]:
            for report in train(training):
                if training.state.updates == 3 and fault == "No space left":
                    breaking.setattr(LocalFileSystem, "put_file", refuse)
                elif training.state.updates == 3 and SHARED.exists():
                    SHARED.rename("elsewhere")
                elif training.state.updates == 7:
                    breaking.undo()
                    SHARED.mkdir(exist_ok=True)
                yield report
                if training.state.updates == 9:
                    raise trainings.Killed

        patch.setattr(run, "train", failing)
        with pytest.raises(trainings.Killed):
            finish(checkpoints="shared")
    warnings = re.findall("Warning: .*", capsys.readouterr().err)
    assert len(warnings) >= 3
    assert all(re.search(f"shared/.* has not got the newest checkpoint: .*{fault}", one) for one in warnings)
    assert list_copies() == [2, 4, 6, 8, 9][-len(list_copies()) :]
    shutil.rmtree(WORK)
    assert finish(checkpoints="shared") == wanted


@pytest.mark.parametrize(
    ("number", "end"), [(signal.SIGUSR1, SystemExit), (signal.SIGINT, KeyboardInterrupt)]
)
@pytest.mark.usefixtures("in_foreground")
def test_a_signal_saves_copies_and_ends(
    number: signal.Signals, end: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    """After Slurm's signal before the limit of a job, or Ctrl-C, another machine goes on from this update."""
    wanted = undisturbed(checkpoint_updates=100)
    train = run.train

    def interrupted(training: Training) -> Iterator[Any]:
        for report in train(training):
            if training.state.updates == 5:
                signal.raise_signal(number)
            yield report

    with monkeypatch.context() as patch:
        patch.setattr(run, "train", interrupted)
        with pytest.raises(end) as caught:
            finish(checkpoint_updates=100, checkpoints="shared")
    assert caught.value.args == ((128 + number,) if end is SystemExit else ())
    assert list_copies()[-1] == 5
    shutil.rmtree(WORK)
    assert finish(checkpoint_updates=100, checkpoints="shared") == wanted


def test_a_checkpoint_is_saved_when_the_last_one_is_old(monkeypatch: pytest.MonkeyPatch) -> None:
    """Minutes bound what a crash costs, whatever an update takes."""
    clock = itertools.count(step=70)
    timing = SimpleNamespace(monotonic=lambda: next(clock), perf_counter=time.perf_counter)
    monkeypatch.setattr(follow, "time", timing)
    kept = interrupt(monkeypatch, after=3, checkpoint_updates=100, checkpoint_minutes=1)
    assert [updates_of(path) for path in kept] == [3, 2]
