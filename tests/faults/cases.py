"""The table of faults: each takes an up-to-date repository and does something bad to it."""

import itertools
import shutil
import signal
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pipelines.repair import SITE
from pipelines.stages._params import module_of
from tests.faults import forked, injection, repository
from tests.faults.surroundings import surroundings


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

    def operation(self, process: str, share: float) -> int:
        """Return the number of an operation: share 0 is the first, 1 the last."""
        return 1 + round(share * (self.counts[process] - 1))


Fault = Callable[[Setting], None]


@dataclass(frozen=True)
class Case:
    """A row of the table."""

    kind: str
    name: str
    fault: Fault

    def __str__(self) -> str:
        return f"{self.kind}: {self.name}"


def at_operation(stage: str, share: float, action: injection.Action, process: str | None = None) -> Fault:
    """Return a fault at an operation of a stage's process, or of another."""

    def fault(setting: Setting) -> None:
        number = setting.operation(process or stage, share)
        hook = injection.at(number, action, setting.folder)
        ignore(setting.interrupt(stage, hook, process))

    return fault


def kills() -> Iterator[Case]:
    """Kill a stage, DVC or everything, at operations of stages and of DVC itself."""
    for target, stage, share in (
        ("group", "snapshot", 0.5),
        ("group", "download@train", 0.7),
        ("group", "encode@train", 1.0),
        ("group", "train@1", 0.1),
        ("group", "train@1", 0.9),
        ("group", "package@1", 0.0),
        ("dvc", "truecase", 0.5),
        ("dvc", "align", 0.0),
        ("dvc", "train@1", 0.5),
        ("dvc", "evaluate", 1.0),
        ("stage", "tokenize@train", 0.7),
        ("stage", "candidates", 1.0),
        ("stage", "train@1", 0.3),
        ("stage", "translate@1", 0.5),
    ):
        action = injection.send(signal.SIGKILL, target)
        yield Case(f"kill {target}", f"{stage} at {share:.0%}", at_operation(stage, share, action))
    for share in (0.1, 0.5, 0.9):
        action = injection.send(signal.SIGKILL, "group")
        yield Case("kill group", f"DVC at {share:.0%}", at_operation("filter", share, action, "dvc"))
    for name, keep in itertools.product(("rwlock", "dvc.lock"), (0.0, 0.5)):
        yield Case("kill group", f"while {name} is written, {keep:.0%} of it", in_place(name, keep))
    for stage, size in (("snapshot", 100), ("train@1", 5000)):
        yield Case("kill stage", f"{stage} after {size} bytes of a file", with_small_files(stage, size, True))


def in_place(name: str, keep: float) -> Fault:
    """Return a fault that kills everything while DVC writes a file in place."""

    def fault(setting: Setting) -> None:
        hook = injection.on(name, injection.cut_and_die(keep), setting.folder)
        assert setting.interrupt("filter", hook, "dvc") == -signal.SIGKILL

    return fault


def with_small_files(stage: str, size: int, dies: bool) -> Fault:
    """Return a fault that limits the bytes a stage can write to a file; one that needs no more succeeds."""
    return lambda setting: ignore(setting.interrupt(stage, injection.limit_file_size(size, dies)))


def ignore(_: object) -> None:
    """Accept any result."""


def signals() -> Iterator[Case]:
    """Send signals that end programs."""
    for number, target, stage in (
        (signal.SIGINT, "group", "train@1"),
        (signal.SIGTERM, "dvc", "tokenize@train"),
        (signal.SIGTERM, "stage", "train@1"),
        (signal.SIGHUP, "group", "tokenize@train"),
    ):
        fault = signal_at(stage, injection.send(number, target))
        yield Case("signal", f"{signal.Signals(number).name} to {target} in {stage}", fault)


def signal_at(stage: str, action: injection.Action) -> Fault:
    """Return a fault that sends a signal in mid-stage; DVC ignores SIGINT while a stage runs."""

    def fault(setting: Setting) -> None:
        number = setting.operation(stage, 0.5)
        ignore(setting.interrupt(stage, injection.at(number, action, setting.folder)))

    return fault


def disk_and_memory() -> Iterator[Case]:
    """Make operations fail for lack of disk or memory."""
    for name, stage, share in (
        ("full", "tokenize@train", 0.5),
        ("full", "train@1", 0.5),
        ("broken", "filter", 1.0),
        ("broken", "translate@1", 1.0),
    ):
        fault = at_operation(stage, share, injection.fail(injection.DISK[name]))
        yield Case("disk", f"{name}, {stage} at {share:.0%}", fault)
    yield Case("disk", "package@1 cannot write beyond 3000 bytes", with_small_files("package@1", 3000, False))
    yield Case("memory", "none left, train@1 at 50%", at_operation("train@1", 0.5, injection.fail_for_memory))
    yield Case("memory", "vocabulary gets 4 MB", with_little_memory("vocabulary", 4_000_000))


def with_little_memory(stage: str, size: int) -> Fault:
    """Return a fault that runs a stage with a memory limit."""
    return lambda setting: ignore(setting.interrupt(stage, injection.limit_memory(size)))


DAMAGE: dict[str, Callable[[bytes, bytes], bytes]] = {
    "cut": lambda content, _: content[: len(content) // 2],
    "extended": lambda content, _: content + b"\0" * 64,
    "flipped": lambda content, _: content[: len(content) // 2] + flip(content[len(content) // 2 :]),
    "swapped": lambda _, other: other,
}


def flip(content: bytes) -> bytes:
    """Flip one bit, the lowest of the first byte."""
    return bytes([content[0] ^ 1]) + content[1:]


def damage() -> Iterator[Case]:
    """Damage the outputs of stages and DVC's own files."""
    for path, how in (
        ("data/tokenized/train/target.txt", "cut"),
        ("data/encoded/train/source.ids.npy", "extended"),
        ("data/trained/1/model/weights.safetensors", "flipped"),
        ("data/replaced/1/plain.txt", "swapped"),
    ):
        yield Case("damage", f"{path} {how}", damaged(path, how, "data/evaluation/scores.csv"))
    for name, how in ((".dvc/tmp/rwlock", "garbage"), (".dvc/tmp/btime", "gone"), ("dvc.lock", "cut")):
        yield Case("damage", f"{name} {how}", damaged_state(name, how))
    for how in ("empty", "cut"):
        yield Case("damage", f"cache of runs {how}", damaged_runs(how))
        yield Case("damage", f"DVC's databases {how}", damaged_databases(how))


def damaged(path: str, how: str, other: str) -> Fault:
    """Return a fault that damages an output; `swapped` puts another file in its place."""

    def fault(setting: Setting) -> None:
        file = setting.folder / path
        content = DAMAGE[how](file.read_bytes(), (setting.folder / other).read_bytes())
        file.write_bytes(content)

    return fault


def spoil(path: Path, how: str) -> None:
    """Empty a file, cut it in half, fill it with garbage, or remove it."""
    if how == "gone":
        path.unlink(missing_ok=True)
    else:
        content = path.read_bytes() if path.exists() else b""
        path.write_bytes({"empty": b"", "cut": content[: len(content) // 2]}.get(how, b"\xff\x00{[" * 9))


def damaged_state(path: str, how: str) -> Fault:
    """Return a fault that damages one of DVC's own files."""
    return lambda setting: spoil(setting.folder / path, how)


def damaged_runs(how: str) -> Fault:
    """Return a fault that damages DVC's run cache, and removes dvc.lock, the other record of runs."""

    def fault(setting: Setting) -> None:
        for path in (setting.folder / ".dvc" / "cache" / "runs").rglob("*"):
            if path.is_file():
                spoil(path, how)
        (setting.folder / "dvc.lock").unlink()

    return fault


def damaged_databases(how: str) -> Fault:
    """Return a fault that damages the databases in which DVC keeps file hashes."""

    def fault(setting: Setting) -> None:
        assert forked.repro(setting.folder) == 0  # a copy has none yet
        for path in (setting.folder / SITE).rglob("*.db"):
            spoil(path, how)

    return fault


def concurrency() -> Iterator[Case]:
    """Run two commands in one clone."""
    for stage in ("tokenize@train", "train@1"):
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
        number = setting.operation(stage, 0.5)
        hook = injection.at(number, injection.send(signal.SIGKILL, "dvc"), setting.folder)
        setting.interrupt(stage, hook)
        forked.repro(setting.folder, None, "--single-item", stage)

    return fault


def edits() -> Iterator[Case]:
    """Edit what a stage depends on while it runs; put it back afterwards."""
    for what, stage in (
        ("value", "train@1"),
        ("code", "align"),
        ("input", "download@train"),
        ("input", "evaluate"),
    ):
        yield Case(f"edit {what}", f"in {stage}", edited(what, stage))


def edited(what: str, stage: str) -> Fault:
    """Return a fault after which DVC must have recorded the stage as it was, or not at all."""

    def fault(setting: Setting) -> None:
        folder = setting.folder
        source = (folder / "pipelines").resolve()
        (folder / "pipelines").unlink()  # a link that all repositories share
        shutil.copytree(source, folder / "pipelines")
        path = {
            "value": folder / "params.yaml",
            "code": folder / "pipelines" / "stages" / f"{module_of(stage)}.py",
            "input": folder / INPUTS.get(stage, ""),
        }[what]
        before = path.read_bytes() if path.exists() else None
        after = (before or b"").replace(b"batch_sentences: 16", b"batch_sentences: 17")

        def edit(_: Path) -> None:
            path.write_bytes(after if what == "value" else after + b"\nEDITED = 1\n")

        record = repository.lock(folder)[stage]
        number = setting.operation(stage, 0.5)
        status = setting.interrupt(stage, injection.at(number, edit, folder))
        assert path.read_bytes() != before
        found = repository.lock(folder).get(stage)
        assert (status, found) == (0, record) if what == "value" else (status != 0 and found is None)
        if before is None:
            path.unlink()
        else:
            path.write_bytes(before)

    return fault


INPUTS = {"download@train": "data/own/new.txt", "evaluate": "data/replaced/1/plain.txt"}


def odd_surroundings() -> Iterator[Case]:
    """Run in surroundings unlike a developer's machine."""
    for name, act in surroundings().items():
        yield Case("surroundings", name, in_folder(act))


def in_folder(act: Callable[[Path], None]) -> Fault:
    """Return a fault that needs only the folder."""
    return lambda setting: act(setting.folder)


def cases() -> list[Case]:
    """Return the table."""
    return [
        *kills(),
        *signals(),
        *disk_and_memory(),
        *damage(),
        *concurrency(),
        *edits(),
        *odd_surroundings(),
    ]


def recovers(setting: Setting, wanted: Mapping[str, str]) -> list[str]:
    """Run `make repro` again after a fault; return how the result differs from a run without faults.

    Args:
        wanted: hashes of the outputs of a run without faults.
    """
    faults = [f"process {process.pid} is left" for process in forked.left_after(setting.folder, 10)]
    status = forked.repro(setting.folder)
    if status:
        return [*faults, f"the next command ended with status {status}"]
    return [*faults, *differences(setting.folder, wanted)]


def differences(folder: Path, wanted: Mapping[str, str]) -> list[str]:
    """Return how a repository differs from an undisturbed run, including unfinished files."""
    found = repository.outputs(folder)
    differ = [f"{name} differs" for name in wanted if found.get(name) != wanted[name]]
    new = [f"{name} is new" for name in found if name not in wanted]
    return [*differ, *new, *(f"{path} is left" for path in (folder / "data").rglob(".*"))]
