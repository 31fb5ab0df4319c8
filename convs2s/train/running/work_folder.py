"""The work folder: files that a training writes while it runs, to resume after any interruption.

    WORK/lock                               held by the training that writes here
    WORK/tensorboard/ID/                    event files, with run.tensorboard
    WORK/ID/checkpoint-UPDATES.safetensors  of the training whose fingerprint has this ID
    WORK/mark                               of the current run, with several workers
    WORK/ended                              ID of the training that ended last, and where copies of it are

Nothing is overwritten: different settings have a different ID, and each checkpoint is named after its number
of updates.

Training resumes from its newest usable checkpoint. A checkpoint is usable if its file is whole, if training
would not have ended before it, and if the checkpoint of the best epoch up to then, from which the model is
exported, is whole as well.

Two of each kind are kept, so that one damaged file costs little: the last two checkpoints; and those of the
best epoch now, and of the one that was the best before it. If the model is the mean of several epochs, read
"the best epochs" for "the best epoch". An epoch may be in both sets; if its file is damaged, no checkpoint is
usable, and training starts from scratch.

At the end of training, the outputs are written, while the checkpoints stay. The caller removes them once it
knows that the outputs are safe (`remove_ended`). If it is killed while it removes them, the next run makes
the same outputs again from what is left.
"""

import contextlib
import hashlib
import itertools
import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from convs2s.base.files import atomic_path, remove
from convs2s.base.messages import inflect, is_out_of_memory
from convs2s.config.format import NewerFormatError
from convs2s.train.running.checkpoint import (
    Snapshot,
    TrainingCheckpoint,
    checkpoint_name,
    list_updates,
    read_checkpoint,
    restore,
)
from convs2s.train.running.checkpoint_copies import remove_copies
from convs2s.train.running.job import list_changed
from convs2s.train.training import State, Training

PATTERN = checkpoint_name("*")
LAST = "ended"
START_MARK = "mark"
"""File with the mark of the current start of several workers: a worker that finds its mark here may write."""


class WorkFolder:
    """The checkpoints of one training; the caller holds the folder's lock."""

    def __init__(self, work: Path, prints: dict[str, str]) -> None:
        self.work, self.prints = work, prints
        identity = hashlib.sha256(json.dumps(prints, sort_keys=True).encode()).hexdigest()
        self.own = work / identity[:12]
        self.events = work / "tensorboard" / self.own.name

    def checkpoint(self, updates: int) -> Path:
        """Return the path of the checkpoint after `updates` updates."""
        return self.own / checkpoint_name(updates)

    def list_saved(self) -> list[int]:
        """Return the numbers of updates for which there is a checkpoint, in ascending order."""
        return list_updates(path.name for path in self.own.glob(PATTERN))

    def resume(self, training: Training) -> str:
        """Resume from the newest usable checkpoint; return a message that describes what was done.

        Unusable checkpoints stay where they are; one that only a later version of convs2s can read raises a
        NewerFormatError.
        """
        faults = []
        for updates in reversed(self.list_saved()):
            path = self.checkpoint(updates)
            try:
                restore(self.usable(updates, training), training, path)
            except NewerFormatError as error:  # to train from scratch would cost what it holds
                raise NewerFormatError(f"{error} Or delete {self.own} to train from scratch.") from None
            # Whatever is wrong with this file, an older checkpoint or none gives the same result.
            except Exception as error:
                if is_out_of_memory(error):  # nothing is wrong with the file
                    raise
                faults.append(f"{path} cannot be used: {error}")
                continue
            state = training.state
            place = f"epoch {len(state.epochs) + 1}, after {inflect(state.updates, 'update')}"
            return "\n".join([*faults, f"Training continues from {path}: {place}."])
        return "\n".join([*faults, "Training starts from scratch." if faults else self.why_from_scratch()])

    def usable(self, updates: int, training: Training) -> TrainingCheckpoint:
        """Read a checkpoint and check that this training can resume from it; raise ValueError if not."""
        checkpoint = read_checkpoint(self.checkpoint(updates))
        state = checkpoint.state
        epoch = training.annealing.ended_before(state.perplexities, within_epoch=state.epoch_updates > 0)
        if epoch is not None:
            raise ValueError(f"it is beyond the end of training, which now comes after epoch {epoch}.")
        self.best(state, training.params.average)
        return checkpoint

    def best(self, state: State, count: int) -> list[TrainingCheckpoint]:
        """Return the checkpoints of the best epochs."""
        best = state.bests(count)[0] if state.epochs else []
        return [read_checkpoint(self.checkpoint(updates)) for updates in best]

    def list_kept(self, training: Training) -> set[int]:
        """Return which checkpoints, by their updates, to keep once the current state is saved.

        Checkpoints ahead of the training stay: they are damaged, or training now ends before them.
        """
        state = training.state
        saved = self.list_saved()
        earlier = [updates for updates in saved if updates < state.updates]
        ahead = [updates for updates in saved if updates > state.updates]
        bests = itertools.chain.from_iterable(state.bests(training.params.average))
        return {state.updates, *earlier[-1:], *bests, *ahead}

    def write(self, snapshot: Snapshot, kept: set[int]) -> None:
        """Write a checkpoint, then remove those not to be kept; all remain if the disk is full."""
        snapshot.write(self.checkpoint(snapshot.updates))
        for updates in set(self.list_saved()) - kept:
            remove(self.checkpoint(updates))

    def mark_ended(self, copies: str) -> None:
        """Note for `remove_ended` that this training has ended, and the address of its copies, if any."""
        with atomic_path(self.work / LAST) as temporary:
            temporary.write_text(f"{self.own.name}\n{copies}", encoding="utf-8")

    def why_from_scratch(self) -> str:
        """Return a message on why there is no checkpoint, with what changed if another training has one."""
        paths = [path for path in self.work.glob(f"*/{PATTERN}") if path.parent != self.own]
        if not paths:
            return "Training starts."
        newest = max(paths, key=lambda path: path.stat().st_mtime)
        try:
            before = read_checkpoint(newest).prints
        except (OSError, ValueError) as error:
            return f"Training starts from scratch: {error}"
        changed = list_changed(before, self.prints)
        return (
            f"Training starts from scratch: these have changed since the checkpoint {newest} was written: "
            f"{', '.join(changed)}. The checkpoint is kept: undo the change to resume from it, or delete it."
        )


@contextlib.contextmanager
def hold(work: Path) -> Iterator[None]:
    """Hold the lock of a work folder, created if missing; if another process holds it, say so and wait.

    The kernel releases the lock when its holder dies, however it dies.
    """
    work.mkdir(parents=True, exist_ok=True)
    lock = FileLock(work / "lock")
    with contextlib.suppress(Timeout):
        lock.acquire(blocking=False)
    if not lock.is_locked:
        print(f"{work} is in use by another process. Waiting for it to exit.", file=sys.stderr, flush=True)
    with lock:
        yield


def remove_ended(work: Path) -> None:
    """Remove the checkpoints of the training that ended last in a work folder, once its outputs are safe."""
    last = work / LAST
    if not last.is_file():
        return
    name, _, copies = last.read_text(encoding="utf-8").partition("\n")
    if copies:
        remove_copies(copies)
    shutil.rmtree(work / name, ignore_errors=True)  # what is left would only be resumed from
    (work / START_MARK).unlink(missing_ok=True)
    last.unlink()
