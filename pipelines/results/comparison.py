"""The table of a sweep: what each row changes, and its metrics or why it has none."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from dvc.repo import Repo

from convs2s.score.identity import SetIdentity
from pipelines.results.paper import SPEED


@dataclass(frozen=True)
class Row:
    """A row of a sweep: its experiment, what it changes, and what the paper's table says about it."""

    experiment: str
    changes: dict[str, Any]
    facts: dict[str, Any]


def labels_of(rows: Sequence[Row]) -> dict[str, str]:
    """Return a label for each experiment: the paper's, or NAME=VALUE with the shortest possible names."""
    if all(row.facts for row in rows):
        return {
            row.experiment: ", ".join(filter(None, map(row.facts.get, ("row", "column")))) for row in rows
        }
    for parts in (-1, 0):  # the last part of a dotted name, or all
        labels = {
            row.experiment: ", ".join(f"{'.'.join(k.split('.')[parts:])}={v}" for k, v in row.changes.items())
            for row in rows
        }
        if len(set(labels.values())) == len(labels):
            break
    return labels


def results_of(root: Path, others: Sequence[Path]) -> dict[str, Any]:
    """Return the metrics of an experiment, with test set and signature if it has them, and its speed.

    Args:
        root: of its workspace.
        others: workspaces in which its trainings may have run.
    """
    from pipelines.results.costs import speed_of  # noqa: PLC0415  # importing torch is slow
    from pipelines.results.provenance import SIGNATURES, TEST_SET  # noqa: PLC0415

    with Repo(str(root)) as repo:
        results = flat_metrics(repo.metrics.show()[""]["data"])
    if (root / SIGNATURES).is_file():
        signatures = json.loads((root / SIGNATURES).read_text(encoding="utf-8"))
        results["signature"] = signatures["bleu_tokenized"]
        results["test_set"] = str(SetIdentity.read(root / TEST_SET))
    return results | {SPEED: speed_of(root, others)}


def flat_metrics(files: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metrics of all files, dotted; those of a training are prefixed with its folder's name."""
    flat: dict[str, Any] = {}
    for path, content in files.items():
        folder = Path(path).parent.name
        prefix = "" if folder == "evaluation" else f"{folder}."
        for row in pd.json_normalize(content.get("data", {})).to_dict("records"):
            flat |= {f"{prefix}{name}": value for name, value in row.items()}
    return flat


def comparison(rows: Sequence[Row], results: Mapping[str, Mapping[str, Any]]) -> pd.DataFrame:
    """Return the table: each row's changes, and its results or why it failed; means over seeds come first.

    Args:
        results: by experiment, what `results_of` returns, or the reason of a failure as `failed`.
    """
    table = pd.DataFrame(
        {"experiment": row.experiment, **row.facts, **row.changes, SPEED: None, **results[row.experiment]}
        for row in rows
    )
    settings = {"experiment", "failed", *(key for row in rows for key in (*row.facts, *row.changes))}

    def rank(column: str) -> tuple[bool, ...]:
        return column not in settings, not column.startswith("mean."), column != SPEED

    columns = sorted(map(str, table.columns), key=rank)
    return table[columns]
