"""The table of faults: each takes an up-to-date repository and does something bad to it."""

import errno
import locale
import os
import resource
import shutil
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple
from unittest.mock import Mock

from tests.faults import forked, injection, repository, results

Fault = Callable[[Path], object]  # called with the folder of a copy of the repository


class Case(NamedTuple):
    """A row of the table."""

    kind: str
    name: str
    fault: Fault

    def __str__(self) -> str:
        return f"{self.kind}: {self.name}"


def interrupt(folder: Path, stage: str, hook: injection.Hook, process: str = "") -> None:
    """Make DVC run a stage with a hook in its process, or in DVC's own, that must make the command fail."""
    repository.forget(folder, stage)
    assert forked.start(folder, {process or stage: hook}, "--single-item", stage).wait() != 0


def at(number: int, stage: str, action: injection.Action, process: str = "") -> Fault:
    """Return a fault at the n-th operation of a stage's process, or of DVC's own."""

    def fault(folder: Path) -> None:
        hook = injection.operations(lambda count, path: action(path) if count == number else None, folder)
        interrupt(folder, stage, hook, process)

    return fault


def cut_in_place(name: str, folder: Path) -> None:
    """Kill everything while DVC writes a file in place."""
    file, cut = folder / name, injection.cut_and_die
    hook = injection.operations(lambda _, path: cut(path) if path == file else None, folder)
    interrupt(folder, "filter", hook, "dvc")


def damage(name: str, folder: Path) -> None:
    """Cut an output in half."""
    (folder / name).write_bytes((folder / name).read_bytes()[: (folder / name).stat().st_size // 2])


def train_twice(folder: Path) -> None:
    """Run two commands at once; one may have to wait, and at least one must succeed."""
    repository.forget(folder, "train@1")
    both = [forked.start(folder, None, "--single-item", "train@1") for _ in range(2)]
    assert 0 in [process.wait() for process in both]


def train_right_after_a_kill(folder: Path) -> None:
    """Start a command after a kill of DVC, whose stage may still be running."""
    at(20, "train@1", injection.send(signal.SIGKILL, "dvc"))(folder)
    repository.repro(folder, None, "--single-item", "train@1")


def edit(stage: str, path: str, folder: Path) -> None:
    """Edit what a stage depends on while it runs, and undo it later: DVC must not have recorded the stage."""
    source = (folder / "pipelines").resolve()
    (folder / "pipelines").unlink()  # a link that all repositories share
    shutil.copytree(source, folder / "pipelines")
    before = (folder / path).read_bytes()
    after = before.replace(b"batch_sentences: 16", b"batch_sentences: 17")
    after += b"" if path == "params.yaml" else b"\nEDITED = 1\n"
    at(4, stage, lambda _: (folder / path).write_bytes(after))(folder)
    assert stage not in results.lock(folder)
    (folder / path).write_bytes(before)


def run_with(hook: forked.Hook, folder: Path) -> None:
    """Run everything with a hook in DVC and, since they are its children, in all stages."""
    results.begin_anew(folder)
    assert repository.repro(folder, {"dvc": hook}) == 0, folder.with_suffix(".log").read_text()[-2000:]


def allow_little() -> None:
    """Allow what a small container does: 64 open files, ASCII, no name, no HOME, no TMPDIR."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    os.umask(0o077)
    os.environ.update({"LANG": "C", "LC_ALL": "C", "HOME": "/proc", "TMPDIR": "/nonexistent"})
    locale.setlocale(locale.LC_ALL, "C")
    for name in ("USER", "LOGNAME"):
        os.environ.pop(name, None)


def run_under_an_odd_name(folder: Path) -> None:
    """Run everything in a folder with a name that a shell would take apart, then move it back."""
    results.begin_anew(folder)
    place = folder.rename(folder.with_name("-f a'b\"c$HOME Übung 翻译"))
    try:
        assert repository.repro(place) == 0, place.with_suffix(".log").read_text()[-2000:]
    finally:
        place.rename(folder)


def link_data(folder: Path) -> None:
    """Keep data/ on another disk, behind a link."""
    shutil.move(folder / "data", folder.with_name("disk"))
    (folder / "data").symlink_to(folder.with_name("disk"))
    run_with(lambda: None, folder)


KILL = partial(injection.send, signal.SIGKILL)
NO_SPACE, BROKEN = (OSError(number, "injected") for number in (errno.ENOSPC, errno.EIO))
LITTLE_SPACE = partial(interrupt, stage="train@1", hook=injection.die_beyond(5000))
CASES = [
    Case("kill group", "train@1", at(30, "train@1", KILL("group"))),
    Case("kill group", "train@1 at its start", at(5, "train@1", KILL("group"))),
    Case("kill group", "encode@train at its end", at(8, "encode@train", KILL("group"))),
    Case("kill dvc", "train@1", at(40, "train@1", KILL("dvc"))),
    Case("kill dvc", "evaluate at its end", at(25, "evaluate", KILL("dvc"))),
    Case("kill stage", "train@1", at(20, "train@1", KILL("stage"))),
    Case("kill stage", "candidates", at(20, "candidates", KILL("stage"))),
    Case("kill in DVC", "early", at(50, "filter", KILL("group"), "dvc")),
    Case("kill in DVC", "late", at(120, "filter", KILL("group"), "dvc")),
    Case("kill in a write", "half of dvc.lock", partial(cut_in_place, "dvc.lock")),
    Case("kill in a write", "half of .dvc/tmp/rwlock", partial(cut_in_place, ".dvc/tmp/rwlock")),
    Case("kill in a write", "5000 bytes of a checkpoint", LITTLE_SPACE),
    Case("signal", "SIGINT to group in train@1", at(30, "train@1", injection.send(signal.SIGINT, "group"))),
    Case("signal", "SIGTERM to dvc", at(3, "tokenize@train", injection.send(signal.SIGTERM, "dvc"))),
    Case("disk", "no space in filter", at(4, "filter", Mock(side_effect=NO_SPACE))),
    Case("disk", "an error in translate@1", at(10, "translate@1", Mock(side_effect=BROKEN))),
    Case("memory", "none left in train@1", at(30, "train@1", Mock(side_effect=MemoryError))),
    Case("damage", "of weights", partial(damage, "data/trained/1/model/weights.safetensors")),
    Case("damage", "of a text", partial(damage, "data/tokenized/train/target.txt")),
    Case("concurrency", "two commands from train@1 on", train_twice),
    Case("concurrency", "a second command right after a kill of dvc", train_right_after_a_kill),
    Case("edit value", "in train@1", partial(edit, "train@1", "params.yaml")),
    Case("edit code", "in align", partial(edit, "align", "pipelines/stages/align.py")),
    Case("edit input", "in evaluate", partial(edit, "evaluate", "data/replaced/1/plain.txt")),
    Case("surroundings", "of a small container", partial(run_with, allow_little)),
    Case("surroundings", "a name with quotes, a dollar and a hyphen first", run_under_an_odd_name),
    Case("surroundings", "data is a link", link_data),
]
"""The first case of a kind should be the most important one."""
