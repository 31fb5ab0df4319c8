"""Training progress on the pages, from the file progress.json in the stage's work folder."""

import contextlib
import contextvars
import json
import threading
import time
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

from prefect.artifacts import create_progress_artifact, update_progress_artifact

from pipelines.flows.artifacts import stage_key
from pipelines.flows.graph import Stage

FILE = "progress.json"
SECONDS = 2.0  # between two updates of the artifact


def percentage(progress: Mapping[str, Any]) -> float:
    """Return how much of all epochs is done; an annealed training may end before its last epoch."""
    done = progress["epoch"] - 1 + progress["update"] / max(1, progress["updates"])
    return float(round(min(100.0, 100.0 * done / progress["max_epochs"]), 1))


def description(progress: Mapping[str, Any]) -> str:
    """Return training progress in words, what one looks for at its beginning; the end may be cut off."""
    perplexity = progress["validation_perplexity"]
    return (
        "epoch {epoch} of {max_epochs}, {left} left in it, {tokens_per_second:,.0f} tokens/s, "
        "loss {loss:.3f}, {update:,} of {updates:,} updates".format(
            left=timedelta(seconds=round(progress["seconds_left"])), **progress
        )
        + ("" if perplexity is None else f", validation perplexity {perplexity:.3f}")
    )


@contextlib.contextmanager
def showing_progress(stage: Stage, work: Path) -> Iterator[None]:
    """Keep an artifact up to date with the training that works in a folder.

    A thread does it: a server that is away would make the reader of the training's output wait, and with it
    the training itself. It is not waited for at the end, either.
    """
    over, key = threading.Event(), stage_key(stage, "progress")
    context = contextvars.copy_context()  # the artifact belongs to the task run of the calling thread
    thread = threading.Thread(target=context.run, args=(_keep, key, work / FILE, over), daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(timeout=5.0)


def _keep(key: str, path: Path, over: threading.Event) -> None:
    shown, artifact = time.time_ns(), None  # what an earlier training has left there is not shown
    last = False
    while not last:
        last = over.wait(SECONDS)
        with contextlib.suppress(Exception):  # no such file yet, or no server: the stage goes on
            if (written := path.stat().st_mtime_ns) > shown:
                progress = json.loads(path.read_text(encoding="utf-8"))
                if artifact is None:
                    artifact = create_progress_artifact(percentage(progress), key, description(progress))
                else:
                    assert isinstance(artifact, UUID)
                    update_progress_artifact(artifact, percentage(progress), description(progress))
                shown = written
