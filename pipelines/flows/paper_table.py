"""Tables of the paper as sweeps: their rows, and ours beside the published figures (pipelines.results)."""

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
from prefect import get_run_logger
from prefect.artifacts import create_markdown_artifact

from convs2s.config.load import load_params
from pipelines.flows import artifacts, experiment, workspace
from pipelines.flows.graph import Stage
from pipelines.flows.workspace import ROOT
from pipelines.results import paper as results_paper
from pipelines.results.paper import Table


def read_table(name: str) -> Table:
    """Read experiments/tables/NAME.yaml; raise a FileNotFoundError or ValueError if that cannot be."""
    return results_paper.read_table(name, ROOT / "experiments" / "tables")


def rows_of(paper: Table, overrides: Mapping[str, Any]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Return the rows of a table of the paper: what the table says of each, and what that changes here.

    Raises:
        ValueError: if the overrides do not fit params.yaml, from which with them the rows begin.
    """
    with TemporaryDirectory() as folder:
        path = Path(shutil.copy(ROOT / "params.yaml", folder))
        experiment.override(path, overrides)
        base = load_params(path)
    commit = workspace.revision(ROOT)
    return [
        (
            {"row": row.row, "column": row.column, **row.circumstances(base), "commit": commit},
            row.overrides(base.model),
        )
        for row in paper.rows
    ]


def scored_set(root: Path, stages: Mapping[str, Stage]) -> dict[str, str]:
    """Return test set and signature of the scores; nothing if the pipeline does not write them."""
    try:
        paths = [root / stages["evaluate"].output(name) for name in ("test_set.json", "signatures.json")]
    except KeyError:
        return {}
    test_set, signatures = (json.loads(path.read_text(encoding="utf-8")) for path in paths)
    description = "{name}: {lines:,} lines, sha256 {sha256}".format(**test_set)
    return {"test_set": description, "signature": signatures["bleu_tokenized"]}


def speed_of(root: Path, others: Sequence[Path]) -> float | None:
    """Return target tokens a second of a row's trainings, which may have run in the copy of another row."""
    from pipelines.results import costs  # noqa: PLC0415  # torch takes its time

    return costs.speed_of(root, others)


def show_table(name: str, paper: Table, table: pd.DataFrame) -> None:
    """Write the paper's table with ours beside it, and show it and its picture in the UI."""
    from pipelines.results import ablation_report  # noqa: PLC0415  # matplotlib takes its time

    text, picture = ablation_report.write(name, paper, table, ROOT / "data" / "sweeps")
    create_markdown_artifact(text, key=artifacts.key("table", name), description=paper.title)
    artifacts.image(picture, artifacts.key("picture", name), paper.title)
    get_run_logger().info("\n%s", text)
