"""Artifacts of a run in the Prefect UI; their keys start with numbers, to sort in pipeline order."""

import base64
import contextlib
import json
import re
import socket
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from prefect import get_client, get_run_logger, runtime
from prefect.artifacts import (
    create_image_artifact,
    create_link_artifact,
    create_markdown_artifact,
    create_table_artifact,
)
from prefect.client.schemas.filters import ArtifactFilter
from prefect.settings import PREFECT_UI_URL

from pipelines import shell
from pipelines.flows.graph import Stage
from pipelines.flows.workspace import ROOT

SUMMARY = "1-summary"
ORDER = {"train": 2, "evaluate": 3}  # after the summary; those of a sweep's rows come before its table


def address(kind: str, identity: object) -> str:
    """Return the URL of a page; at the older UI's URLs, users who have not logged in get an error."""
    return f"{PREFECT_UI_URL.value()}/v2/{kind}/{identity}"


def key(*parts: object) -> str:
    """Return an artifact's key: lower-case letters, digits and hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", "-".join(str(part) for part in parts if part).lower()).strip("-")


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


@warn_if_not_shown()
def show(stage: Stage, failed: bool = False) -> None:
    """Show the curves of a training, even a failed one, or the scores of an evaluation.

    Everything else is in the report at the end of a run.
    """
    if stage.kind == "train":
        curves = stage.root / (f"{stage.work}/curves" if failed else stage.outputs["curves"])
        if curves.is_dir():  # absent if it failed before logging anything
            show_curves(stage, curves, " until it ended" * failed)
    elif stage.kind == "evaluate" and not failed:
        show_scores(stage)


def show_curves(stage: Stage, curves: Path, until: str) -> None:
    """Show the curves of a training as a picture, embedded because the server may be on another machine."""
    from convs2s.score.curves import draw_curves  # noqa: PLC0415  # matplotlib takes a second to load

    with TemporaryDirectory() as folder:
        picture = Path(folder) / "curves.png"
        draw_curves(curves, picture)
        data = base64.b64encode(picture.read_bytes()).decode()
    url, name = f"data:image/png;base64,{data}", stage_key(stage, "curves")
    create_image_artifact(url, key=name, description=f"Curves of {stage.name}{until}")


def show_scores(stage: Stage) -> None:
    """Show the score table with its signatures."""
    import pandas as pd  # noqa: PLC0415  # takes half a second to load

    scores = pd.read_csv(stage.root / stage.outputs["scores.csv"], dtype={"member": str})
    signatures = json.loads((stage.root / stage.outputs["signatures.json"]).read_text(encoding="utf-8"))
    create_table_artifact(
        json.loads(scores.to_json(orient="records")),
        key=stage_key(stage, "scores"),
        description="Signatures:\n\n" + "\n".join(f"- {name}: `{text}`" for name, text in signatures.items()),
    )


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
    create_link_artifact(page.as_uri(), page.name, key=key(4, "report", name), description=where)
    get_run_logger().info("Report: %s", page.as_uri())


@warn_if_not_shown()
def show_summary(lines: Sequence[str]) -> None:
    """Show a summary of this flow run, with links to its other artifacts."""
    of_run = ArtifactFilter.model_validate({"flow_run_id": {"any_": [runtime.flow_run.id]}})
    with get_client(sync_client=True) as client:
        found = sorted(client.read_artifacts(artifact_filter=of_run), key=lambda one: one.key or "")
    links = [f"- [{one.key}]({address('artifacts/artifact', one.id)})" for one in found]
    text = [f"# {runtime.flow_run.name}\n", *lines, "\n## Pictures and tables\n", *links]
    create_markdown_artifact("\n".join(text), SUMMARY, "Summary of the run")
