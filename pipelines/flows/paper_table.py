"""Tables of the paper as sweeps: their rows, and ours beside the published figures (pipelines.results)."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from prefect import get_run_logger
from prefect.artifacts import create_markdown_artifact

from convs2s.config.params import Params
from convs2s.score.identity import SetIdentity
from pipelines.flows import artifacts, workspace
from pipelines.flows.graph import Stage
from pipelines.flows.workspace import ROOT
from pipelines.results.paper import SPEED, Table


def rows_of(paper: Table, base: Params) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Return the rows of a table of the paper: what the table says of each, and what that changes here."""
    of_all = {"commit": workspace.revision(ROOT), "corpus": base.package.name}
    return [
        ({"row": row.row, "column": row.column} | of_all, row.overrides(base.model)) for row in paper.rows
    ]


def facts_of(root: Path, stages: Mapping[str, Stage], others: Sequence[Path]) -> dict[str, Any]:
    """Return test set and signature of the scores, where the pipeline writes them, and the training speed.

    The trainings may have run in the workspaces of other rows.
    """
    from pipelines.results import costs  # noqa: PLC0415  # torch takes its time

    facts: dict[str, Any] = {SPEED: costs.speed_of(root, others)}
    outputs = stages["evaluate"].outputs if "evaluate" in stages else {}
    if {"test_set.json", "signatures.json"} <= outputs.keys():
        signatures = json.loads((root / outputs["signatures.json"]).read_text(encoding="utf-8"))
        facts["test_set"] = str(SetIdentity.read(root / outputs["test_set.json"]))
        facts["signature"] = signatures["bleu_tokenized"]
    return facts


def show_table(name: str, paper: Table, table: pd.DataFrame) -> None:
    """Write the paper's table with ours beside it, and show it and its picture in the UI."""
    from pipelines.results import ablation_report  # noqa: PLC0415  # matplotlib takes its time

    text, picture = ablation_report.write(name, paper, table, ROOT / "data" / "sweeps")
    create_markdown_artifact(text, key=artifacts.key(5, "table", name), description=paper.title)
    artifacts.image(picture, artifacts.key(6, "picture", name), paper.title)
    get_run_logger().info("\n%s", text)
