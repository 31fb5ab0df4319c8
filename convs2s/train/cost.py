"""The cost of a training: hardware, seconds and speed, across all interruptions.

The cost is not part of the outputs, because a model has the same bytes however fast it was trained. It is
kept next to the checkpoints, under the hash of the model, to be found for a model restored from a cache.
"""

import hashlib
import json
import platform
import time
from collections.abc import Collection, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeVar

import torch
from pydantic import TypeAdapter

from convs2s.text.corpus.files import atomic_path
from convs2s.train.distributed import Workers

T = TypeVar("T")
Unit = Literal["GPU", "CPU core"]
CPU_NAMES = Path("/proc/cpuinfo")


@dataclass(frozen=True)
class Session:
    """An uninterrupted stretch of training, including validation.

    Attributes:
        device: name of the GPU or the CPU.
        unit: what `count` counts.
        count: GPUs, or compute threads, of all workers.
        torch: version of PyTorch.
        first: updates done when the session began.
        last: updates done at its last checkpoint.
        seconds: from its start to that checkpoint; work after it was lost and is not counted.
        target_tokens: non-padding target tokens up to that checkpoint, over all workers; None if read from an
            older file.
        training_seconds: of the updates alone, without validation and checkpoints; None if read from an older
            file.
    """

    device: str
    unit: Unit
    count: int
    torch: str
    first: int
    last: int
    seconds: float
    target_tokens: int | None = None
    training_seconds: float | None = None


def new_session(workers: Workers, updates: int) -> Session:
    """Return a new session of these workers."""
    common: dict[str, Any] = {
        "torch": str(torch.__version__),
        "first": updates,
        "last": updates,
        "seconds": 0.0,
        "target_tokens": 0,
        "training_seconds": 0.0,
    }
    if workers.device.type == "cuda":
        return Session(torch.cuda.get_device_name(workers.device), "GPU", workers.count, **common)
    return Session(cpu_name(), "CPU core", workers.count * torch.get_num_threads(), **common)


def cpu_name() -> str:
    """Return the CPU's name, as reported by the system."""
    if CPU_NAMES.is_file():
        for line in CPU_NAMES.read_text(encoding="utf-8", errors="replace").split("\n"):
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.machine()


class Meter:
    """Counts a training's seconds and target tokens, and keeps them next to its checkpoint."""

    def __init__(self, path: Path, workers: Workers, updates: int) -> None:
        """Begin a session after `updates` updates; if training was resumed, keep its earlier sessions."""
        self.path = path
        self.saved = history(path) if updates else {}
        self.before = self.saved.setdefault(updates, [])
        self.session = new_session(workers, updates)
        self.target_tokens, self.training_seconds = 0, 0.0
        self.start = time.perf_counter()

    def count(self, target_tokens: int, seconds: float) -> None:
        """Count an update and the seconds it took."""
        self.target_tokens += target_tokens
        self.training_seconds += seconds

    def save(self, updates: int, kept: Collection[int]) -> None:
        """Write the cost so far; call it before each checkpoint.

        Args:
            kept: updates of the checkpoints whose costs stay in the file, because training may resume from
                any of them.
        """
        session = replace(
            self.session,
            last=updates,
            seconds=round(time.perf_counter() - self.start, 3),
            target_tokens=self.target_tokens,
            training_seconds=round(self.training_seconds, 3),
        )
        self.saved = {key: sessions for key, sessions in self.saved.items() if key in kept}
        self.saved[updates] = [*self.before, session]
        content = {key: [asdict(one) for one in sessions] for key, sessions in self.saved.items()}
        with atomic_path(self.path) as temporary:
            temporary.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def timed(reports: Iterable[T]) -> Iterator[tuple[T, float]]:
    """Yield each report of a training with the seconds spent on it.

    The caller's own work between reports, such as saving a checkpoint, is not counted.
    """
    begin = time.perf_counter()
    for report in reports:
        yield report, time.perf_counter() - begin
        begin = time.perf_counter()


def history(path: Path) -> dict[int, list[Session]]:
    """Return the sessions up to each checkpoint kept, by updates; none if the file is missing or damaged."""
    try:
        return TypeAdapter(dict[int, list[Session]]).validate_json(path.read_bytes())
    except (OSError, ValueError):
        return {}


def keep_cost(path: Path, updates: int, weights: Path, costs: Path) -> None:
    """Write the sessions of a finished training to the folder `costs`, if none of them is missing.

    Args:
        path: the meter's file.
        updates: updates of the whole training.
        weights: the trained model.
    """
    sessions = history(path).get(updates, [])
    if sessions and sessions[0].first == 0:  # else the start is unknown
        with atomic_path(costs / file_name(weights)) as temporary:
            content = [asdict(session) for session in sessions]
            temporary.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def file_name(weights: Path) -> str:
    """Return the name of the file that holds a model's cost."""
    with weights.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest() + ".json"


def read_sessions(path: Path) -> list[Session]:
    """Return the sessions in a file; none if the file is missing or damaged."""
    try:
        return TypeAdapter(list[Session]).validate_json(path.read_bytes())
    except (OSError, ValueError):
        return []


def target_tokens_per_second(sessions: Iterable[Session]) -> float | None:
    """Return the speed of updates over all sessions; None if it is unknown for any session."""
    tokens, seconds = 0, 0.0
    for session in sessions:
        if session.target_tokens is None or session.training_seconds is None:
            return None
        tokens += session.target_tokens
        seconds += session.training_seconds
    return tokens / seconds if seconds else None
