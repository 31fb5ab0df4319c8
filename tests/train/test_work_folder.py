"""Whatever is interrupted, damaged or changed: the next run ends with the outputs of an undisturbed one."""

import builtins
import errno
import hashlib
import io
import json
import math
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from safetensors import safe_open
from safetensors.torch import save_file

from convs2s.text.corpus.files import remove
from convs2s.train import loop, run, work_folder
from convs2s.train.checkpoint import read_checkpoint
from convs2s.train.export import save
from convs2s.train.loop import EpochReport, State, Training
from convs2s.train.run import PATHS, train_model
from convs2s.train.setup import build_training
from convs2s.train.work_folder import WorkFolder
from tests.train.tiny import ALONE, tiny_params, write_tiny

pytestmark = pytest.mark.fault("damaged checkpoint")

EPOCHS, UPDATES = 5, 2  # of a whole training: epochs, and updates in each
WORK, OUT = Path("work"), Path("out")
INPUTS = Path("encoded"), Path("vocabulary"), Path("candidates/candidates.npz")
KNOWN: dict[str, dict[str, str]] = {}


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Relative paths are part of the fingerprint, so each training works in the current folder."""
    write_tiny(tmp_path, train=8 * UPDATES, valid=8)
    monkeypatch.chdir(tmp_path)


def finish(**changes: Any) -> dict[str, str]:
    """Train to the end; return the outputs, as hashes by name."""
    wanted = tiny_params(Path(), **{"max_epochs": EPOCHS, "checkpoint_updates": 1} | changes)
    train_model(wanted.model, wanted.train, 1, *map(Path, PATHS))
    return {
        str(path): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(OUT.rglob("*"))
        if path.is_file()
    }


def undisturbed(nats: Sequence[float] = (), **changes: Any) -> dict[str, str]:
    """Train from the beginning to the end, once for all tests, and leave no trace."""
    key = repr((nats, changes))
    if key not in KNOWN:
        KNOWN[key] = whole(**changes)
    return KNOWN[key]


def whole(**changes: Any) -> dict[str, str]:
    outputs = finish(**changes)
    assert [path.name for path in sorted(WORK.iterdir())] == ["costs", "lock"]
    assert len(list((WORK / "costs").iterdir())) == 1
    shutil.rmtree(WORK)
    shutil.rmtree(OUT)
    return outputs


class Killed(BaseException):
    """The end of a process that no handler may see coming."""


def interrupt(monkeypatch: pytest.MonkeyPatch, after: int, **changes: Any) -> list[Path]:
    """Train until so many updates are done; return the checkpoints, the newest first."""
    original = loop.train

    def interrupted(training: Training) -> Iterator[Any]:
        for report in original(training):
            yield report
            if training.state.updates == after and isinstance(report, EpochReport) >= (after % UPDATES == 0):
                raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(run, "train", interrupted)
        with pytest.raises(Killed):
            finish(**changes)
    return sorted(WORK.glob("*/checkpoint-*"), key=updates_of, reverse=True)


def updates_of(checkpoint: Path) -> int:
    return int(checkpoint.stem.removeprefix("checkpoint-"))


def flip(path: Path) -> None:
    """Flip a bit in the middle of a file, which is in a tensor."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def state_of(checkpoint: Path) -> State:
    return read_checkpoint(checkpoint).state


def validating(monkeypatch: pytest.MonkeyPatch, nats: list[float]) -> None:
    """Let each epoch have a given validation loss, whichever epoch a training continues with."""
    monkeypatch.setattr(loop, "validation_loss", lambda training: nats[len(training.state.epochs)])


class Moments:
    """What is on disk before each operation that changes something in these folders.

    That is what a kill leaves: buffers that are not yet flushed are lost, and no handler runs. One operation
    may be told to fail, as on a full disk.
    """

    def __init__(self, patch: pytest.MonkeyPatch, *folders: Path, failing: int | None = None) -> None:
        self.folders, self.names, self.failing = folders, list[str](), failing
        self.contents: list[dict[Path, bytes | None]] = []
        writes = lambda _, mode="r", *__, **___: bool(set(mode) & set("wax"))  # noqa: E731
        for module, name, changes in (
            (os, "mkdir", lambda path, *_, **__: not Path(path).exists()),
            (os, "rename", lambda *_, **__: True),
            (os, "replace", lambda *_, **__: True),
            (os, "unlink", lambda path, dir_fd=None, **_: dir_fd is not None or Path(path).exists()),
            (os, "rmdir", lambda *_, **__: True),
            (io, "open", writes),
            (builtins, "open", writes),
        ):
            patch.setattr(module, name, self.watched(name, getattr(module, name), changes))

    def watched(
        self, name: str, operation: Callable[..., Any], changes: Callable[..., bool]
    ) -> Callable[..., Any]:
        def call(path: Any, *args: Any, **options: Any) -> Any:
            # An operation relative to an open folder is one of shutil.rmtree.
            ours = options.get("dir_fd") is not None or Path(path).parts[:1] in {
                f.parts for f in self.folders
            }
            if ours and changes(path, *args, **options):
                self.names.append(f"{name} {path}")
                self.contents.append(self.content())
                if len(self.names) - 1 == self.failing:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
            return operation(path, *args, **options)

        return call

    def content(self) -> dict[Path, bytes | None]:
        """Return each file's bytes; None for a folder."""
        paths = [path for folder in self.folders for path in (folder, *folder.rglob("*")) if path.exists()]
        return {path: None if path.is_dir() else path.read_bytes() for path in sorted(paths)}

    def put_back(self, content: dict[Path, bytes | None]) -> None:
        for folder in self.folders:
            shutil.rmtree(folder, ignore_errors=True)
        for path, data in content.items():
            if data is None:
                path.mkdir()
            else:
                path.write_bytes(data)


def test_killed_at_any_operation_the_next_run_ends_as_an_undisturbed_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before each of them in turn, in three epochs of one update; nothing but costs and the lock is left."""
    write_tiny(tmp_path, train=8, valid=4)
    settings: dict[str, Any] = {"max_epochs": 3, "checkpoint_updates": 2}
    with monkeypatch.context() as patch:
        moments = Moments(patch, WORK, OUT)
        wanted = finish(**settings)
    kinds = {name.split()[0] for name in moments.names}
    assert kinds == {"open", "mkdir", "replace", "rename", "unlink", "rmdir"}
    assert len(moments.names) > 40, moments.names
    for name, content in zip(moments.names, moments.contents, strict=True):
        moments.put_back(content)
        assert finish(**settings) == wanted, name
        assert [path.name for path in sorted(WORK.iterdir())] == ["costs", "lock"], name
        assert len(list((WORK / "costs").iterdir())) == 1, name


@pytest.mark.slow
def test_any_operation_may_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a full disk: the run ends with that error, or if it only cleans up, well; the next one does."""
    write_tiny(tmp_path, train=8, valid=4)
    settings: dict[str, Any] = {"max_epochs": 3, "checkpoint_updates": 2}
    with monkeypatch.context() as patch:
        whole_run = Moments(patch, WORK, OUT)
        wanted = finish(**settings)
    ended_well: list[str] = []
    for failing in range(len(whole_run.names)):
        shutil.rmtree(WORK)
        shutil.rmtree(OUT, ignore_errors=True)
        with monkeypatch.context() as patch:
            moments = Moments(patch, WORK, OUT, failing=failing)
            try:
                assert finish(**settings) == wanted
                ended_well.append(moments.names[failing].split()[0])
            except OSError as error:
                assert "No space left on device" in str(error)
        assert finish(**settings) == wanted, moments.names[-1]
        assert [path.name for path in sorted(WORK.iterdir())] == ["costs", "lock"]
    assert set(ended_well) == {"rename", "rmdir", "unlink"}


def test_clean_up_that_fails_is_no_failed_training(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The outputs are there; a network file system may refuse to remove an open file."""
    wanted = undisturbed(max_epochs=1)

    def refuse(path: Path) -> None:
        if not path.name.endswith(".ended"):
            return remove(path)
        raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), str(path))

    with monkeypatch.context() as patch:
        patch.setattr(work_folder, "remove", refuse)
        assert finish(max_epochs=1) == wanted
    assert "cannot be removed ([Errno 39] Directory not empty" in capsys.readouterr().err
    assert len(list(WORK.glob("*.ended"))) == 1
    assert finish(max_epochs=1) == wanted
    assert not list(WORK.glob("*.ended"))


def test_a_half_written_checkpoint_is_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each kill would otherwise leave one, of gigabytes."""
    (newest, *_) = interrupt(monkeypatch, after=3)
    part = newest.with_name(f".{newest.name}.4711.part")
    part.write_bytes(b"half")
    interrupt(monkeypatch, after=4)
    assert newest.is_file()
    assert not part.exists()


def test_what_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last two checkpoints, and those at the end of the last two epochs that were the best so far."""
    validating(monkeypatch, [3.0, 2.5, 2.0, 2.7, 2.8])
    checkpoints = interrupt(monkeypatch, after=9)
    assert [updates_of(path) for path in checkpoints] == [9, 8, 6, 4]
    assert state_of(checkpoints[0]).bests == [2, 4, 6]


# Damaged


@pytest.mark.parametrize(
    ("damaged", "continued"),
    [
        ([0], "epoch 5, after 8 updates"),
        ([0, 1], "epoch 4, after 6 updates"),
        ([0, 1, 2], "epoch 3, after 4 updates"),
        ([2], "epoch 3, after 4 updates"),  # that of the best epoch, which all later ones need
        ([3], "epoch 5, after 9 updates"),
        ([0, 1, 2, 3], None),
    ],
    ids=str,
)
def test_after_damage_an_earlier_checkpoint_gives_the_same_outputs(
    damaged: list[int],
    continued: str | None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Of those after 9, 8, 6 (the best) and 4 updates, whichever are damaged; stderr has why."""
    nats = [3.0, 2.5, 2.0, 2.7, 2.8]
    validating(monkeypatch, nats)
    wanted = undisturbed(nats)
    checkpoints = interrupt(monkeypatch, after=9)
    assert [updates_of(path) for path in checkpoints] == [9, 8, 6, 4]
    for i in damaged:
        flip(checkpoints[i])
    capsys.readouterr()
    assert finish() == wanted
    message = capsys.readouterr().err
    assert (f": {continued}." if continued else "Training starts afresh.") in message
    if damaged != [3]:
        assert f"{checkpoints[damaged[-1]]} is damaged (ValueError: its checksums do not fit" in message


@pytest.mark.parametrize(
    ("which", "damage"),
    [
        (0, lambda path: path.write_bytes(b"")),
        (0, lambda path: (path.unlink(), path.mkdir())),
        (1, lambda path: path.unlink()),
        (1, lambda path: path.write_bytes(path.read_bytes()[:-1])),
        (1, lambda path: shutil.copy(min(path.parent.glob("*.safetensors"), key=updates_of), path)),
    ],
    ids=["last empty", "last a folder", "best missing", "best cut", "best another's"],
)
def test_any_fault_of_a_file_is_survived(
    which: int, damage: Callable[[Path], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last checkpoint, or that of the best epoch: the outputs are those of an undisturbed training."""
    settings: dict[str, Any] = {"max_epochs": 3}
    wanted = undisturbed(**settings)
    checkpoints = interrupt(monkeypatch, after=5, **settings)
    assert [updates_of(path) for path in checkpoints] == [5, 4, 2]
    damage(checkpoints[which])
    assert finish(**settings) == wanted


def test_damage_of_the_best_checkpoint_while_training_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Never a model; the next run falls back."""
    nats = [3.0, 2.0, 2.5, 2.6, 2.7]
    validating(monkeypatch, nats)
    wanted = undisturbed(nats)
    original = loop.train

    def damaging(training: Training) -> Iterator[Any]:
        yield from original(training)
        flip(next(WORK.glob("*/checkpoint-4.*")))

    with monkeypatch.context() as patch:
        patch.setattr(run, "train", damaging)
        with pytest.raises(ValueError, match=r"checkpoint-4\.safetensors is damaged"):
            finish()
    assert not OUT.exists()
    assert finish() == wanted


# Changed


@pytest.mark.parametrize(
    ("before", "now", "after", "message"),
    [
        ({}, {"max_epochs": 2}, 7, "checkpoint-7.safetensors cannot be used: it is beyond the end"),
        ({}, {"max_epochs": 3}, 6, "continues from work/ID/checkpoint-6.safetensors: epoch 4"),
        ({}, {"patience": 1}, 9, "beyond the end of training, which is now after epoch 3."),
        ({}, {"min_learning_rate": 0.01}, 9, "beyond the end of training, which is now after epoch 4."),
        ({"max_epochs": 3}, {"max_epochs": 5}, 6, "checkpoint-6.safetensors: epoch 4, after 6 updates."),
    ],
    ids=["fewer epochs", "exactly the end", "patience", "learning rate", "more epochs"],
)
def test_another_end_gives_what_an_undisturbed_training_to_it_gives(
    before: dict[str, Any],
    now: dict[str, Any],
    after: int,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A training that is beyond its new end goes back to a checkpoint that an undisturbed one has."""
    nats = [3.0, 2.5, 2.6, 2.4, 2.3]
    validating(monkeypatch, nats)
    common = {"anneal_factor": 0.1, "anneal_after_epoch": 3}
    wanted = undisturbed(nats, **common | now)
    interrupt(monkeypatch, after=after, **common | before)
    identity = next(WORK.glob("*/checkpoint-*")).parent.name
    capsys.readouterr()
    assert finish(**common | now) == wanted
    assert message.replace("ID", identity) in capsys.readouterr().err


def test_checkpoints_of_other_settings_are_kept_and_found_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An edit and its undo lose nothing, even if the edited training has ended in between."""
    wanted = undisturbed()
    kept = interrupt(monkeypatch, after=7)
    contents = [path.read_bytes() for path in kept]
    capsys.readouterr()
    other = finish(learning_rate=0.2)
    assert (
        f"Training starts afresh: since the checkpoint {kept[0]} was written, these have changed: "
        "learning_rate. The checkpoint is kept: undo the change to continue from it, or delete it."
    ) in capsys.readouterr().err
    assert [path.read_bytes() for path in kept] == contents
    assert finish() == wanted != other
    assert f"Training continues from {kept[0]}: epoch 4, after 7 updates." in capsys.readouterr().err


def test_an_unreadable_checkpoint_of_other_settings_is_reported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It may be the one that was to be continued."""
    (newest, *_) = interrupt(monkeypatch, after=4)
    newest.write_bytes(b"no checkpoint")
    finish(learning_rate=0.2, max_epochs=1)
    assert f"Training starts afresh: the checkpoint {newest} cannot be read" in capsys.readouterr().err


def test_a_training_that_diverges_leaves_no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even with a finished epoch of its own, or the checkpoints and outputs of another training."""
    interrupt(monkeypatch, after=7)
    for bad in (math.nan, math.inf):
        validating(monkeypatch, [3.0, bad])
        with pytest.raises(FloatingPointError, match=r"after epoch 2 \(4 updates\) the validation loss is"):
            finish(learning_rate=0.2)
        assert not OUT.exists()


def test_other_workers_follow_the_one_that_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    """To the same checkpoint, even if there is a newer one; without it, they say what to share."""
    (*_, older) = interrupt(monkeypatch, after=5)
    settings = tiny_params(Path(), max_epochs=EPOCHS)
    training = build_training(settings.model, settings.train, 1, *INPUTS, ALONE)
    folder = WorkFolder(WORK, read_checkpoint(older).prints)
    folder.follow(training, updates_of(older))
    assert training.state == state_of(older)
    with pytest.raises(FileNotFoundError, match="Wanted one work folder that all machines see"):
        folder.follow(training, 4711)


# Older


def make_older(checkpoint: Path, training: Training, wanted: Any) -> None:
    """Rewrite a work folder as versions before 2026-11-22 had it."""
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
    """With the best model that it left, if no later epoch is better, and its cost."""
    validating(monkeypatch, nats)
    wanted = undisturbed(nats)
    (newest, *_) = interrupt(monkeypatch, after=7)
    settings = tiny_params(Path())
    make_older(newest, build_training(settings.model, settings.train, 1, *INPUTS, ALONE), settings)
    capsys.readouterr()
    with monkeypatch.context() as patch:
        moments = Moments(patch, WORK, OUT)
        assert finish() == wanted
    message = capsys.readouterr().err
    assert f"{newest} is of an earlier version, without checksums" in message
    assert f"Training continues from {newest}: epoch 4, after 7 updates." in message
    assert [path.name for path in sorted(WORK.iterdir())] == ["costs", "lock"]
    assert len(list((WORK / "costs").iterdir())) == 1
    adopting = [i for i, name in enumerate(moments.names) if name.startswith("rename")][1:3]
    for i in adopting:  # killed after the best model was moved, and then its cost
        moments.put_back(moments.contents[i])
        assert (WORK / "checkpoint.safetensors").is_file()
        assert not (WORK / "best").exists()
        assert finish() == wanted
        assert len(list((WORK / "costs").iterdir())) == 1


def test_a_checkpoint_of_an_earlier_version_and_other_settings_is_kept(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where it is."""
    (newest, *_) = interrupt(monkeypatch, after=7)
    settings = tiny_params(Path())
    make_older(newest, build_training(settings.model, settings.train, 1, *INPUTS, ALONE), settings)
    older = WORK / "checkpoint.safetensors"
    content = older.read_bytes()
    finish(learning_rate=0.2, max_epochs=1)
    assert f"since the checkpoint {older} was written" in capsys.readouterr().err
    assert older.read_bytes() == content
    assert (WORK / "best").is_dir()
