"""What Prefect's pages show of a run besides its stages and their logs."""

import json
import re
import socket
import sys
from pathlib import Path

from prefect import get_run_logger
from prefect.artifacts import create_link_artifact, create_table_artifact

from pipelines import shell
from pipelines.flows.graph import Stage
from pipelines.flows.workspace import ROOT


def key(*parts: object) -> str:
    """Return an artifact's key: lower-case letters, digits and hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", "-".join(str(part) for part in parts if part).lower()).strip("-")


def show_scores(stage: Stage) -> None:
    """Show the score table with its signatures, if the stage has one."""
    if "scores.csv" in stage.outputs:
        import pandas as pd  # noqa: PLC0415  # takes half a second to load

        scores = pd.read_csv(stage.root / stage.outputs["scores.csv"], dtype={"member": str})
        signatures = json.loads((stage.root / stage.outputs["signatures.json"]).read_text(encoding="utf-8"))
        lines = [f"- {name}: `{signature}`" for name, signature in signatures.items()]
        rows = json.loads(scores.to_json(orient="records"))
        create_table_artifact(rows, key(stage.title(), "scores"), "\n".join(["Signatures:\n", *lines]))


def show_report(root: Path, name: str) -> None:
    """Write the report on a finished run, log its scores, and link to it.

    Args:
        root: the run's workspace, this clone or a copy of it; the report itself stays in this clone.
        name: the run's experiment; empty for a run in this clone.
    """
    page = ROOT / "data" / f"report{name and '-' + name}.html"
    command = [sys.executable, "-m", "pipelines.report", "--out", str(page), f"--experiment={name}"]
    get_run_logger().info("\n%s", shell.run(*command, cwd=root))
    where = f"On {socket.gethostname()}; browsers open a file only from their address bar: `{page}`"
    create_link_artifact(page.as_uri(), page.name, key("report", name), where)
