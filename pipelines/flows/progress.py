"""Training progress in the Prefect UI, from progress.json in the stage's work folder."""

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
SECONDS = 2.0  # between updates of the artifact


def percentage(progress: Mapping[str, Any]) -> float:
    """Return the percentage of `max_epochs` that is done; annealing may end a training earlier."""
    done = progress["epoch"] - 1 + progress["update"] / max(1, progress["updates"])
    return float(round(min(100.0, 100.0 * done / progress["max_epochs"]), 1))


def description(progress: Mapping[str, Any]) -> str:
    """Return training progress in words, the most important first, since the end may be cut off."""
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
    """Keep an artifact up to date with the training in a work folder.

    This runs in a thread: if the server is unreachable, waiting for it would stall the reader of the
    training's output, and with it the training. For the same reason the thread gets only a few seconds to
    finish.
    """
    over, key = threading.Event(), stage_key(stage, "progress")
    context = contextvars.copy_context()  # so that the artifact belongs to the calling thread's task run
    thread = threading.Thread(target=context.run, args=(_keep, key, work / FILE, over), daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(timeout=5.0)


def _keep(key: str, path: Path, over: threading.Event) -> None:
    shown, artifact = time.time_ns(), None  # ignore a file left by an earlier training
    last = False
    while not last:
        last = over.wait(SECONDS)
        with contextlib.suppress(Exception):  # no file yet, or no server: neither may stop the stage
            if (written := path.stat().st_mtime_ns) > shown:
                progress = json.loads(path.read_text(encoding="utf-8"))
                if artifact is None:
                    artifact = create_progress_artifact(percentage(progress), key, description(progress))
                else:
                    assert isinstance(artifact, UUID)
                    update_progress_artifact(artifact, percentage(progress), description(progress))
                shown = written
