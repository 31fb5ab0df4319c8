"""How far a training is, read from its progress bar."""

import re
import time
from dataclasses import dataclass
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
    """The progress artifact of one training."""

    def __init__(self, key: str, epochs: int | None) -> None:
        self.key = key
        self.epochs = epochs
        self.artifact: UUID | None = None
        self.shown = 0.0

    def hear(self, line: str) -> None:
        """Show what a line says, if it is one of the progress bar."""
        seen = position(line)
        if seen is None or (time.monotonic() - self.shown < SECONDS and seen.done < seen.updates):
            return
        self.shown = time.monotonic()
        share, text = round(seen.share(self.epochs), 1), seen.text(self.epochs)
        if self.artifact is None:
            created = create_progress_artifact(share, key=self.key, description=text)
            assert isinstance(created, UUID)
            self.artifact = created
        else:
            update_progress_artifact(self.artifact, share, description=text)

    def finish(self) -> None:
        """Show that the training has ended, before its last possible epoch or at it."""
        if self.artifact is not None:
            update_progress_artifact(self.artifact, 100.0, description="ended")
