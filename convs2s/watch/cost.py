"""The cost of a training: hardware, seconds and speed, across all interruptions.

The cost is not part of the outputs, because a model has the same bytes however fast it was trained. It is
kept next to the checkpoints, under the hash of the model, to be found for a model restored from a cache.
"""

import contextlib
import json
import time
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any


class Meter:
    """Counts a training's seconds and target tokens, and keeps them next to its checkpoints.

    The file has, for the number of updates of each checkpoint, the sessions up to there: uninterrupted
    stretches of training, including validation. Each is a mapping with these keys:
        device, unit, count, torch, precision: of the hardware, and of products on it.
        first, last: updates done when the session began, and at its last checkpoint.
        seconds: from its start to that checkpoint; work after it was lost and is not counted.
        target_tokens: non-padding target tokens up to that checkpoint, over all workers.
        training_seconds: of the updates alone, without validation and checkpoints.
    """

    def __init__(self, path: Path, hardware: Mapping[str, object], updates: int) -> None:
        """Begin a session after `updates` updates; if training was resumed, keep its earlier sessions."""
        self.path, self.hardware, self.first = path, hardware, updates
        self.saved: dict[int, list[Any]] = {}
        if updates:
            with contextlib.suppress(OSError, ValueError):  # missing or damaged: the start is unknown
                self.saved = {int(key): value for key, value in json.loads(path.read_text("utf-8")).items()}
        self.before = self.saved.setdefault(updates, [])
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
        session = {
            **self.hardware,
            "first": self.first,
            "last": updates,
            "seconds": round(time.perf_counter() - self.start, 3),
            "target_tokens": self.target_tokens,
            "training_seconds": round(self.training_seconds, 3),
        }
        self.saved = {key: sessions for key, sessions in self.saved.items() if key in kept}
        self.saved[updates] = [*self.before, session]
        write(self.path, self.saved)

    def finish(self, updates: int, path: Path) -> None:
        """Write the sessions of the whole training, `updates` long, to a file; nothing if one is missing."""
        sessions = self.saved.get(updates, [])
        if sessions and sessions[0]["first"] == 0:
            write(path, sessions)


def write(path: Path, content: object) -> None:
    """Write JSON that is never seen half-written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.part")
    partial.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    partial.replace(path)
