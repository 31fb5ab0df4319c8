"""What the Prefect UI shows of a run: tags, log and artifacts; keys start with the number of their place."""

import base64
import contextlib
import contextvars
import json
import logging
import re
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import UUID

from prefect import get_client, get_run_logger, runtime
from prefect.artifacts import (
    create_image_artifact,
    create_link_artifact,
    create_markdown_artifact,
    create_progress_artifact,
    create_table_artifact,
    update_progress_artifact,
)
from prefect.client.schemas.filters import ArtifactFilter
from prefect.context import TaskRunContext
from prefect.settings import PREFECT_UI_URL

from pipelines import shell
from pipelines.flows.graph import Stage
from pipelines.flows.workspace import ROOT

SUMMARY = "1-summary"
UPSTREAM = re.compile(r"Upstream task run '[0-9a-f-]+' did not reach a 'COMPLETED' state\.")
ORDER = {"train": 2, "evaluate": 3}  # after the summary; those of a sweep's rows come before its table
SECONDS = 2.0  # between updates of a training's progress
LOG_SECONDS = 60.0  # between lines about it in the log, which has no progress bars


def address(kind: str, identity: object) -> str:
    """Return the URL of a page; at the older UI's URLs, users who have not logged in get an error."""
    return f"{PREFECT_UI_URL.value()}/v2/{kind}/{identity}"


def key(*parts: object) -> str:
    """Return an artifact's key: lower-case letters, digits and hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", "-".join(str(part) for part in parts if part).lower()).strip("-")


def create(make: Callable[..., Any], content: Any, key: str, description: str | None = None) -> UUID:
    """Create an artifact in its place on the page of a run; return its id.

    The page shows those with the highest id first, and the server draws ids at random. So artifacts are
    created until one has an id in the right quarter: those of 1-summary begin with c to f, those of 4-report
    with 0 to 3.
    """
    while True:
        found: UUID = make(content, key=key, description=description)
        if found.int >> 126 == 4 - int(key[0]):
            return found
        with get_client(sync_client=True) as client:
            client.delete_artifact(found)


def stage_key(stage: Stage, what: str) -> str:
    """Return the key of an artifact of a stage."""
    return key(ORDER.get(stage.kind, 2), stage.name, what, stage.label)


@contextlib.contextmanager
def warn_if_not_shown() -> Iterator[None]:
    """Show something in the UI; if that fails, log a warning rather than fail the stage."""
    try:
        yield
    except Exception as error:  # the stage's result is already safe in DVC
        get_run_logger().warning("Not shown in the UI: %s: %s", type(error).__name__, error)


def tidy(record: logging.LogRecord) -> bool:
    """Remove a task's UUID from a line of Prefect's log, and the wrong last line on a cancelled run."""
    record.msg = UPSTREAM.sub("A stage that it needs has not succeeded.", str(record.msg))
    return record.msg != "Finished in state Running()"


def tidy_log() -> None:
    """Have the lines of Prefect's own about this run tidied."""
    for kind in ("flow", "task"):
        logging.getLogger(f"prefect.{kind}_runs").addFilter(tidy)


@warn_if_not_shown()
def tag_run(tags: Sequence[str]) -> None:
    """Add tags to this flow run."""
    with get_client(sync_client=True) as client:
        client.update_flow_run(runtime.flow_run.id, tags=[*runtime.flow_run.tags, *tags])


def tag_task(tags: Sequence[str]) -> None:
    """Add tags to this task run; the server learns of them when it ends.

    With tags from the start, Prefect would ask the server for their concurrency limits, and fail if it is
    down.
    """
    context = TaskRunContext.get()
    assert context is not None
    context.task_run.tags = sorted({*context.task_run.tags, *tags})


@warn_if_not_shown()
def show(stage: Stage, failed: bool = False) -> None:
    """Show the curves of a training, even a failed one, or the scores of an evaluation."""
    if stage.kind == "train":
        curves = stage.root / (f"{stage.work}/curves" if failed else stage.outputs["curves"])
        if curves.is_dir():  # absent if it failed before logging anything
            show_curves(stage, curves)
    elif stage.kind == "evaluate" and not failed:
        show_scores(stage)


def show_curves(stage: Stage, curves: Path) -> None:
    """Show the curves of a training as a picture, embedded because the server may be on another machine."""
    from convs2s.score.curves import draw_curves  # noqa: PLC0415  # matplotlib takes a second to load

    with TemporaryDirectory() as folder:
        picture = Path(folder) / "curves.png"
        draw_curves(curves, picture)
        url = f"data:image/png;base64,{base64.b64encode(picture.read_bytes()).decode()}"
    create(create_image_artifact, url, stage_key(stage, "curves"), f"Curves of {stage.name}")


def show_scores(stage: Stage) -> None:
    """Show the score table with its signatures."""
    import pandas as pd  # noqa: PLC0415  # takes half a second to load

    scores = pd.read_csv(stage.root / stage.outputs["scores.csv"], dtype={"member": str})
    signatures = json.loads((stage.root / stage.outputs["signatures.json"]).read_text(encoding="utf-8"))
    lines = [f"- {name}: `{text}`" for name, text in signatures.items()]
    rows, description = json.loads(scores.to_json(orient="records")), "\n".join(["Signatures:\n", *lines])
    create(create_table_artifact, rows, stage_key(stage, "scores"), description)


@warn_if_not_shown()
def show_report(root: Path, name: str) -> None:
    """Write the report on a finished run, and link to it.

    Args:
        root: the run's workspace, this clone or a copy of it; the report itself stays in this clone.
        name: the run's experiment; empty for a run in this clone.
    """
    page = ROOT / "data" / f"report{name and '-' + name}.html"
    shell.run(sys.executable, "-m", "pipelines.report", str(root), "--out", str(page), cwd=ROOT)
    where = f"On {socket.gethostname()}; browsers open a file only from their address bar: `{page}`"
    create(partial(create_link_artifact, link_text=page.name), page.as_uri(), key(4, "report", name), where)
    get_run_logger().info("Report: %s", page.as_uri())


@warn_if_not_shown()
def show_summary(lines: Sequence[str]) -> None:
    """Show a summary of this flow run, with links to its other artifacts."""
    of_run = ArtifactFilter.model_validate({"flow_run_id": {"any_": [runtime.flow_run.id]}})
    with get_client(sync_client=True) as client:
        found = sorted(client.read_artifacts(artifact_filter=of_run), key=lambda one: one.key or "")
    links = [f"- [{one.key}]({address('artifacts/artifact', one.id)})" for one in found]
    text = [f"# {runtime.flow_run.name}\n", *lines, "\n## Pictures and tables\n", *links]
    create(create_markdown_artifact, "\n".join(text), SUMMARY, "Summary of the run")


@contextlib.contextmanager
def show_progress(stage: Stage) -> Iterator[None]:
    """Keep an artifact up to date with progress.json in a training's work folder.

    A thread does this, because waiting for an unreachable server would stall the reader of the training's
    output, and with it the training. At the end it gets a few seconds to show the last state.
    """
    over, path = threading.Event(), stage.root / str(stage.work) / "progress.json"
    context = contextvars.copy_context()  # so that the artifact belongs to the calling thread's task run
    arguments = (follow, stage_key(stage, "progress"), path, over)
    thread = threading.Thread(target=context.run, args=arguments, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(timeout=5.0)


def follow(key: str, path: Path, over: threading.Event) -> None:
    """Show what a training writes to a file, until `over` is set."""
    shown, artifact, ended = time.time_ns(), None, False  # ignore a file left by an earlier training
    due = time.monotonic() + LOG_SECONDS
    while not ended:
        ended = over.wait(SECONDS)
        with contextlib.suppress(Exception):  # no file yet, or no server: neither may stop the stage
            if (written := path.stat().st_mtime_ns) > shown:
                percent, text = describe(json.loads(path.read_text(encoding="utf-8")))
                if time.monotonic() >= due:
                    due = time.monotonic() + LOG_SECONDS
                    get_run_logger().info(f"{percent:.0f}%, {text}")
                artifact = artifact or create(create_progress_artifact, 0.0, key)
                update_progress_artifact(artifact, percent, text)
                shown = written


def describe(progress: Mapping[str, Any]) -> tuple[float, str]:
    """Return the percentage of `max_epochs` that is done, and progress in words, the most important first.

    Annealing may end a training earlier; the UI may cut off the end of the text.
    """
    done = progress["epoch"] - 1 + progress["update"] / max(1, progress["updates"])
    text = (
        "epoch {epoch} of {max_epochs}, {left} left in it, {tokens_per_second:,.0f} tokens/s, "
        "loss {loss:.3f}, {update:,} of {updates:,} updates"
    ).format(left=timedelta(seconds=round(progress["seconds_left"])), **progress)
    if (perplexity := progress["validation_perplexity"]) is not None:
        text += f", validation perplexity {perplexity:.3f}"
    return round(min(100.0, 100.0 * done / progress["max_epochs"]), 1), text
