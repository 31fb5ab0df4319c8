"""The repository that every case starts from: made and run once, with its operations counted."""

import collections
import contextlib
import fcntl
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.faults import forked, injection, repository

Kills = collections.Counter[str]  # by target


@dataclass(frozen=True)
class Base:
    """A repository that is up to date.

    Args:
        folder: the folder of the repository.
        outputs: hashes of the outputs of an undisturbed run.
        counts: number of operations in each stage's process, and in DVC's ("dvc") when it runs one stage.
    """

    folder: Path
    outputs: dict[str, str]
    counts: dict[str, int]


def make(folder: Path) -> Base:
    """Make the repository in a folder and run the DAG, unless another process already has."""
    folder.mkdir(parents=True, exist_ok=True)
    known = folder / "known.json"
    with claimed(folder / "lock"):
        if not known.exists():
            forked.prepare(repository.make(folder / "base"))
            known.write_text(json.dumps(run(folder / "base", folder / "operations")))
        else:
            forked.prepare(folder / "base")
        outputs, counts = json.loads(known.read_text())
    return Base(folder / "base", outputs, counts)


@contextlib.contextmanager
def claimed(path: Path) -> Iterator[None]:
    """Hold a lock against other processes."""
    with path.open("a") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def run(folder: Path, log: Path) -> tuple[dict[str, str], dict[str, int]]:
    """Run the DAG once; return its outputs and the number of operations of each process."""
    log.mkdir()
    note = injection.record(log, folder)
    status = forked.repro(folder, {"*": note})
    assert status == 0, folder.with_suffix(".log").read_text()[-3000:]
    wanted = repository.outputs(folder)
    other = repository.copy(folder, folder.with_name("counted"))
    repository.forget(other, "filter")
    assert forked.repro(other, {"dvc": injection.record(log, other)}, "--single-item", "filter") == 0
    return wanted, {path.name: len(path.read_text().split("\n")) - 1 for path in log.iterdir()}
