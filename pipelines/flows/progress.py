"""Training progress in the Prefect UI, from progress.json in the stage's work folder."""

import contextlib
import contextvars
import json
import threading
import time
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, cast
from uuid import UUID

from prefect.artifacts import create_progress_artifact, update_progress_artifact

from pipelines.flows.artifacts import stage_key
from pipelines.flows.graph import Stage

SECONDS = 2.0  # between updates of the artifact


def percentage(progress: Mapping[str, Any]) -> float:
    """Return the percentage of `max_epochs` that is done; annealing may end a training earlier."""
    done = progress["epoch"] - 1 + progress["update"] / max(1, progress["updates"])
    return float(round(min(100.0, 100.0 * done / progress["max_epochs"]), 1))


def description(progress: Mapping[str, Any]) -> str:
    """Return training progress in words, the most important first, since the end may be cut off."""
    perplexity = progress["validation_perplexity"]
    text = (
        "epoch {epoch} of {max_epochs}, {left} left in it, {tokens_per_second:,.0f} tokens/s, "
        "loss {loss:.3f}, {update:,} of {updates:,} updates"
    ).format(left=timedelta(seconds=round(progress["seconds_left"])), **progress)
    return text if perplexity is None else f"{text}, validation perplexity {perplexity:.3f}"


@contextlib.contextmanager
def show_progress(stage: Stage) -> Iterator[None]:
    """Keep an artifact up to date with the training in a stage's work folder.

    A thread does this, because waiting for an unreachable server would stall the reader of the training's
    output, and with it the training. At the end it gets a few seconds to show the last state.
    """
    over, path = threading.Event(), stage.root / str(stage.work) / "progress.json"
    context = contextvars.copy_context()  # so that the artifact belongs to the calling thread's task run
    arguments = (_follow, stage_key(stage, "progress"), path, over)
    thread = threading.Thread(target=context.run, args=arguments, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(timeout=5.0)


def _follow(key: str, path: Path, over: threading.Event) -> None:
    shown, artifact, ended = time.time_ns(), None, False  # ignore a file left by an earlier training
    while not ended:
        ended = over.wait(SECONDS)
        with contextlib.suppress(Exception):  # no file yet, or no server: neither may stop the stage
            if (written := path.stat().st_mtime_ns) > shown:
                progress = json.loads(path.read_text(encoding="utf-8"))
                artifact = artifact or cast("UUID", create_progress_artifact(0.0, key))
                update_progress_artifact(artifact, percentage(progress), description(progress))
                shown = written
