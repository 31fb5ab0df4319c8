"""The table of faults: each takes an up-to-date repository and does something bad to it."""

import errno
import json
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from tests.faults import forked, injection, repository, results
from tests.faults.surroundings import SURROUNDINGS

Fault = Callable[[Path], object]  # called with the folder of a copy of the repository


class Case(NamedTuple):
    """A row of the table."""

    kind: str
    name: str
    fault: Fault

    def __str__(self) -> str:
        return f"{self.kind}: {self.name}"


def interrupt(folder: Path, stage: str, hook: forked.Hook, process: str | None = None) -> int:
    """Make DVC run a stage with a hook in its process, or in DVC's; return DVC's exit status."""
    repository.forget(folder, stage)
    return forked.start(folder, {process or stage: hook}, "--single-item", stage).wait()


def at(
    stage: str, share: float, action: injection.Action, process: str | None = None
) -> Callable[[Path], int]:
    """Return a fault at an operation of a stage's process, or of DVC's: share 0 is the first, 1 the last."""

    def fault(folder: Path) -> int:
        counts = json.loads((folder / repository.OPERATIONS).read_text())
        number = 1 + round(share * (counts[process or stage] - 1))
        return interrupt(folder, stage, injection.at(number, action, folder), process)

    return fault


def within(stage: str, hook: forked.Hook) -> Fault:
    """Return a fault that runs a stage within limits; one that needs no more succeeds."""
    return lambda folder: interrupt(folder, stage, hook)


def kills() -> Iterator[Case]:
    """Kill a stage, DVC or everything, at operations of stages and of DVC itself."""
    for target, stage, share in (
        ("group", "train@1", 0.1),
        ("group", "train@1", 0.9),
        ("group", "download@train", 0.7),
        ("group", "encode@train", 1.0),
        ("group", "package@1", 0.0),
        ("dvc", "train@1", 0.5),
        ("dvc", "truecase", 0.5),
        ("dvc", "align", 0.0),
        ("dvc", "evaluate", 1.0),
        ("stage", "train@1", 0.3),
        ("stage", "tokenize@train", 0.7),
        ("stage", "candidates", 1.0),
        ("stage", "translate@1", 0.5),
    ):
        action = injection.send(signal.SIGKILL, target)
        yield Case(f"kill {target}", f"{stage} at {share:.0%}", at(stage, share, action))
    for share in (0.5, 0.1, 0.9):
        action = injection.send(signal.SIGKILL, "group")
        yield Case("kill in DVC", f"at {share:.0%}", at("filter", share, action, "dvc"))
    for name in ("dvc.lock", ".dvc/tmp/rwlock"):
        for keep in (0.5, 0.0):
            yield Case("kill in a write", f"of {name}, after {keep:.0%} of it", in_place(name, keep))
    for stage, size in (("train@1", 5000), ("filter", 100)):
        hook = injection.limit_file_size(size, dies=True)
        yield Case("kill in a write", f"of {stage}, after {size} bytes of a file", within(stage, hook))


def in_place(name: str, keep: float) -> Fault:
    """Return a fault that kills everything while DVC writes a file in place."""

    def fault(folder: Path) -> None:
        hook = injection.on(folder / name, injection.cut_and_die(keep), folder)
        assert interrupt(folder, "filter", hook, "dvc") == -signal.SIGKILL

    return fault


def signals() -> Iterator[Case]:
    """Send signals that end programs; DVC ignores SIGINT while a stage runs."""
    for number, target, stage in (
        (signal.SIGINT, "group", "train@1"),
        (signal.SIGTERM, "dvc", "tokenize@train"),
        (signal.SIGTERM, "stage", "train@1"),
        (signal.SIGHUP, "group", "tokenize@train"),
    ):
        name = f"{signal.Signals(number).name} to {target} in {stage}"
        yield Case("signal", name, at(stage, 0.5, injection.send(number, target)))


def disk_and_memory() -> Iterator[Case]:
    """Make operations fail for lack of disk or memory."""
    for number, stage, share in (
        (errno.ENOSPC, "train@1", 0.5),
        (errno.ENOSPC, "tokenize@train", 0.5),
        (errno.EIO, "filter", 1.0),
        (errno.EIO, "translate@1", 1.0),
    ):
        fault = at(stage, share, injection.fail(OSError(number, "injected")))
        yield Case("disk", f"{errno.errorcode[number]}, {stage} at {share:.0%}", fault)
    limit = injection.limit_file_size(3000, dies=False)
    yield Case("disk", "package@1 cannot write beyond 3000 bytes", within("package@1", limit))
    yield Case("memory", "none left, train@1 at 50%", at("train@1", 0.5, injection.fail(MemoryError())))


def damage() -> Iterator[Case]:
    """Damage the outputs of stages; `tests.test_repair` damages DVC's own files."""
    for path, change in (
        ("data/trained/1/model/weights.safetensors", lambda content: content[:-1] + b"!"),
        ("data/tokenized/train/target.txt", lambda content: content[: len(content) // 2]),
        ("data/encoded/train/source.ids.npy", lambda content: content + b"\0" * 64),
        ("data/replaced/1/plain.txt", lambda _: b"another file\n"),
    ):
        yield Case("damage", path, changed(path, change))


def changed(name: str, change: Callable[[bytes], bytes]) -> Fault:
    """Return a fault that changes the content of a file."""

    def fault(folder: Path) -> None:
        before = (folder / name).read_bytes()
        (folder / name).write_bytes(change(before))
        assert (folder / name).read_bytes() != before

    return fault


def concurrency() -> Iterator[Case]:
    """Run two commands in one clone."""
    for stage in ("train@1", "tokenize@train"):
        yield Case("concurrency", f"two commands from {stage} on", twice(stage))
    yield Case("concurrency", "a second command right after a kill of dvc in train@1", at_once("train@1"))


def twice(stage: str) -> Fault:
    """Return a fault that runs two commands at once; one may have to wait, and at least one must succeed."""

    def fault(folder: Path) -> None:
        repository.forget(folder, stage)
        both = [forked.start(folder, None, "--single-item", stage) for _ in range(2)]
        assert 0 in [process.wait() for process in both]

    return fault


def at_once(stage: str) -> Fault:
    """Return a fault that starts a command after a kill of DVC, whose stage may still be running."""

    def fault(folder: Path) -> None:
        at(stage, 0.5, injection.send(signal.SIGKILL, "dvc"))(folder)
        repository.repro(folder, None, "--single-item", stage)

    return fault


def edits() -> Iterator[Case]:
    """Edit what a stage depends on while it runs; put it back afterwards."""
    for kind, stage, path in (
        ("value", "train@1", "params.yaml"),
        ("code", "align", "pipelines/stages/align.py"),
        ("input", "download@train", "data/own/train.tsv"),
        ("input", "evaluate", "data/replaced/1/plain.txt"),
    ):
        yield Case(f"edit {kind}", f"in {stage}", edit(stage, path))


def edit(stage: str, path: str) -> Fault:
    """Return a fault after which DVC must not have recorded the stage."""

    def fault(folder: Path) -> None:
        source = (folder / "pipelines").resolve()
        (folder / "pipelines").unlink()  # a link that all repositories share
        shutil.copytree(source, folder / "pipelines")
        before = (folder / path).read_bytes()
        after = before.replace(b"batch_sentences: 16", b"batch_sentences: 17")
        if path != "params.yaml":
            after += b"\nEDITED = 1\n"

        def change(_: Path) -> None:
            (folder / path).write_bytes(after)

        status = at(stage, 0.5, change)(folder)
        assert (folder / path).read_bytes() != before
        assert status != 0 and stage not in results.lock(folder)
        (folder / path).write_bytes(before)

    return fault


def cases() -> list[Case]:
    """Return the table; the first case of a kind should be the most important one."""
    return [
        *kills(),
        *signals(),
        *disk_and_memory(),
        *damage(),
        *concurrency(),
        *edits(),
        *(Case("surroundings", name, run) for name, run in SURROUNDINGS.items()),
    ]
