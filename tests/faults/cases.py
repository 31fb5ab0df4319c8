"""The table of faults: each takes an up-to-date repository and does something bad to it."""

import errno
import shutil
import signal
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pipelines.repair import SITE
from pipelines.stages._params import module_of
from tests.faults import forked, injection, repository, results
from tests.faults.surroundings import SURROUNDINGS


@dataclass(frozen=True)
class Setting:
    """A copy of the repository for one case.

    Args:
        folder: the folder of the copy.
        counts: number of operations in each stage's process, and in DVC's ("dvc") when it runs stage filter.
    """

    folder: Path
    counts: Mapping[str, int]

    def interrupt(self, stage: str, hook: forked.Hook, process: str | None = None) -> int:
        """Make DVC run a stage with a hook in its process, or in DVC's; return DVC's exit status."""
        repository.forget(self.folder, stage)
        return forked.start(self.folder, {process or stage: hook}, "--single-item", stage).wait()

    def interrupt_at(
        self, stage: str, share: float, action: injection.Action, process: str | None = None
    ) -> int:
        """Interrupt a stage at an operation: share 0 is the first, 1 the last."""
        number = 1 + round(share * (self.counts[process or stage] - 1))
        return self.interrupt(stage, injection.at(number, action, self.folder), process)


Fault = Callable[[Setting], object]


@dataclass(frozen=True)
class Case:
    """A row of the table."""

    kind: str
    name: str
    fault: Fault

    def __str__(self) -> str:
        return f"{self.kind}: {self.name}"


def at(stage: str, share: float, action: injection.Action, process: str | None = None) -> Fault:
    """Return a fault at an operation of a stage's process, or of another."""
    return lambda setting: setting.interrupt_at(stage, share, action, process)


def within(stage: str, hook: forked.Hook) -> Fault:
    """Return a fault that runs a stage within limits; one that needs no more succeeds."""
    return lambda setting: setting.interrupt(stage, hook)


def kills() -> Iterator[Case]:
    """Kill a stage, DVC or everything, at operations of stages and of DVC itself."""
    for target, stage, share in (
        ("group", "train@1", 0.1),
        ("group", "train@1", 0.9),
        ("group", "snapshot", 0.5),
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
    for stage, size in (("train@1", 5000), ("snapshot", 100)):
        hook = injection.limit_file_size(size, dies=True)
        yield Case("kill in a write", f"of {stage}, after {size} bytes of a file", within(stage, hook))


def in_place(name: str, keep: float) -> Fault:
    """Return a fault that kills everything while DVC writes a file in place."""

    def fault(setting: Setting) -> None:
        hook = injection.on(setting.folder / name, injection.cut_and_die(keep), setting.folder)
        assert setting.interrupt("filter", hook, "dvc") == -signal.SIGKILL

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
    yield Case("memory", "vocabulary gets 4 MB", within("vocabulary", injection.limit_memory(4_000_000)))


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda _: b"",
    "cut": lambda content: content[: len(content) // 2],
    "extended": lambda content: content + b"\0" * 64,
    "flipped": lambda content: content[:-1] + bytes([content[-1] ^ 1]),
    "swapped": lambda _: b"another file\n",
    "garbage": lambda _: b"\xff\x00{[" * 9,
}
RUNS, DATABASES = ".dvc/cache/runs/*/*/*", f"{SITE}/**/*.db"


def damage() -> Iterator[Case]:
    """Damage the outputs of stages and DVC's own files."""
    for kind, path, how in (
        ("output", "data/trained/1/model/weights.safetensors", "flipped"),
        ("output", "data/tokenized/train/target.txt", "cut"),
        ("output", "data/encoded/train/source.ids.npy", "extended"),
        ("output", "data/replaced/1/plain.txt", "swapped"),
        ("DVC", "dvc.lock", "cut"),
        ("DVC", ".dvc/tmp/rwlock", "garbage"),
        ("DVC", ".dvc/tmp/btime", "gone"),
        ("DVC", RUNS, "empty"),
        ("DVC", RUNS, "cut"),
        ("DVC", DATABASES, "empty"),
        ("DVC", DATABASES, "cut"),
    ):
        yield Case(f"damage, {kind}", f"{path} {how}", damaged(path, how))


def damaged(pattern: str, how: str) -> Fault:
    """Return a fault that damages files, or removes them."""

    def fault(setting: Setting) -> None:
        if pattern == DATABASES:
            assert repository.repro(setting.folder) == 0  # a copy has none yet
        if pattern == RUNS:
            (setting.folder / "dvc.lock").unlink()  # the other record of runs
        for path in [*setting.folder.glob(pattern)] or [setting.folder / pattern]:
            if how == "gone":
                path.unlink(missing_ok=True)
            else:
                path.write_bytes(DAMAGE[how](path.read_bytes() if path.exists() else b""))

    return fault


def concurrency() -> Iterator[Case]:
    """Run two commands in one clone."""
    for stage in ("train@1", "tokenize@train"):
        yield Case("concurrency", f"two commands from {stage} on", twice(stage))
    yield Case("concurrency", "a second command right after a kill of dvc in train@1", at_once("train@1"))


def twice(stage: str) -> Fault:
    """Return a fault that runs two commands at once; one may have to wait, and at least one must succeed."""

    def fault(setting: Setting) -> None:
        repository.forget(setting.folder, stage)
        both = [forked.start(setting.folder, None, "--single-item", stage) for _ in range(2)]
        assert 0 in [process.wait() for process in both]

    return fault


def at_once(stage: str) -> Fault:
    """Return a fault that starts a command after a kill of DVC, whose stage may still be running."""

    def fault(setting: Setting) -> None:
        setting.interrupt_at(stage, 0.5, injection.send(signal.SIGKILL, "dvc"))
        repository.repro(setting.folder, None, "--single-item", stage)

    return fault


def edits() -> Iterator[Case]:
    """Edit what a stage depends on while it runs; put it back afterwards."""
    for stage, path in (
        ("train@1", "params.yaml"),
        ("align", f"pipelines/stages/{module_of('align')}.py"),
        ("download@train", "data/own/new.txt"),
        ("evaluate", "data/replaced/1/plain.txt"),
    ):
        kind = "value" if path == "params.yaml" else "code" if path.endswith(".py") else "input"
        yield Case(f"edit {kind}", f"in {stage}", edited(stage, path))


def edited(stage: str, path: str) -> Fault:
    """Return a fault after which DVC must have recorded the stage as it was, or not at all."""

    def fault(setting: Setting) -> None:
        folder, file = setting.folder, setting.folder / path
        source = (folder / "pipelines").resolve()
        (folder / "pipelines").unlink()  # a link that all repositories share
        shutil.copytree(source, folder / "pipelines")
        before = file.read_bytes() if file.exists() else None

        def edit(_: Path) -> None:
            after = (before or b"").replace(b"batch_sentences: 16", b"batch_sentences: 17")
            file.write_bytes(after if path == "params.yaml" else after + b"\nEDITED = 1\n")

        record = results.lock(folder)[stage]
        status = setting.interrupt_at(stage, 0.5, edit)
        assert file.read_bytes() != before
        found = results.lock(folder).get(stage)
        assert (status, found) == (0, record) if path == "params.yaml" else status != 0 and found is None
        if before is None:
            file.unlink()
        else:
            file.write_bytes(before)

    return fault


def in_folder(run: Callable[[Path], None]) -> Fault:
    """Return a fault that needs only the folder."""
    return lambda setting: run(setting.folder)


def cases() -> list[Case]:
    """Return the table; the first case of a kind should be the most important one."""
    return [
        *kills(),
        *signals(),
        *disk_and_memory(),
        *damage(),
        *concurrency(),
        *edits(),
        *(Case("surroundings", name, in_folder(run)) for name, run in SURROUNDINGS.items()),
    ]
