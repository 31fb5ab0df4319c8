"""How far a training is, read from its progress bar."""

import contextlib
import contextvars
import re
import threading
from dataclasses import dataclass
from typing import Self
from uuid import UUID

from prefect.artifacts import create_progress_artifact, update_progress_artifact

SECONDS = 2.0
"""Between two updates of the artifact."""
BAR = re.compile(
    r"epoch (?P<epoch>\d+): .*\| *(?P<done>\d+)/(?P<all>\d+) \[(?P<spent>[\d:]+)<(?P<left>[\d:?]+)"
)


@dataclass(frozen=True)
class Position:
    """A look at a progress bar: updates done and in all of an epoch, and its time left as the bar says it."""

    epoch: int
    done: int
    updates: int
    left: str

    def share(self, epochs: int | None) -> float:
        """Return the percentage done: of all epochs if their number is known, else of this one."""
        within = self.done / max(1, self.updates)
        return 100.0 * (within if epochs is None else min(1.0, (self.epoch - 1 + within) / epochs))

    def text(self, epochs: int | None) -> str:
        """Return it in words; an annealed training may end before its last epoch."""
        most = "" if epochs is None else f" of at most {epochs}"
        updates = f"{self.done:,} of {self.updates:,} updates"
        return f"epoch {self.epoch}{most}: {updates}, {self.left} left in this epoch"


def position(line: str) -> Position | None:
    """Read a line of a progress bar, None if it is none of a training."""
    found = BAR.search(line)
    if not found:
        return None
    return Position(int(found["epoch"]), int(found["done"]), int(found["all"]), found["left"])


class Progress:
    """The progress artifact of one training, kept by a thread of its own.

    A server that is away would make the reader of the training's output wait, and that the training itself.
    """

    def __init__(self, key: str, epochs: int | None) -> None:
        self.key = key
        self.epochs = epochs
        self.latest: Position | None = None
        self.over = threading.Event()
        # The artifact belongs to the task run of the thread that makes this.
        self.thread = threading.Thread(target=contextvars.copy_context().run, args=(self._keep,), daemon=True)

    def __enter__(self) -> Self:
        """Begin to show what is heard."""
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End; a server that is away is not waited for."""
        self.over.set()
        self.thread.join(timeout=5.0)

    def hear(self, line: str) -> None:
        """Take note of a line of the progress bar."""
        self.latest = position(line) or self.latest

    def _keep(self) -> None:
        shown: Position | None = None
        artifact: UUID | None = None
        over = False
        while not over:
            over = self.over.wait(SECONDS)
            seen = self.latest
            if seen is None or seen == shown:
                continue
            with contextlib.suppress(Exception):  # whatever Prefect's client raises, the stage goes on
                share, text = round(seen.share(self.epochs), 1), seen.text(self.epochs)
                if artifact is None:
                    created = create_progress_artifact(share, key=self.key, description=text)
                    assert isinstance(created, UUID)
                    artifact = created
                else:
                    update_progress_artifact(artifact, share, description=text)
                shown = seen
