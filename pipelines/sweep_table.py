"""The rows of a sweep, and their results side by side, next to the paper's if there are any (§5.4 to §5.6).

A file in experiments/tables holds the rows of one of the paper's tables, or of your own.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
from dvc.repo import Repo
from pydantic import Field

from convs2s.base.files import read_json
from convs2s.config.faults import suggest, validate
from convs2s.config.load import parse_yaml, read_text
from convs2s.config.model import MOST_LAYERS, KernelWidth, ModelParams
from convs2s.config.section import Positive, Section
from convs2s.score.identity import SetIdentity
from pipelines.preset import EXPERIMENTS
from pipelines.stages._declared import find_value

TABLES = EXPERIMENTS / "tables"
FIGURES = [
    "perplexity, paper",
    "perplexity",
    "perplexity, std",
    "bleu_tokenized, paper",
    "bleu_tokenized",
    "bleu_tokenized, std",
]
"""Titles of the columns with the paper's figures, ours, and the deviation of ours."""
SIGNATURES = Path("data/evaluation/signatures.json")
TEST_SET = Path("data/evaluation/test_set.json")


class LayerStack(Section):
    """Equal layers, as wide as the first layer in params.yaml."""

    layers: Annotated[int, Field(ge=1, le=MOST_LAYERS)]
    kernel: KernelWidth


class TableRow(Section):
    """A row of a table, or one cell of a grid; null keeps the setting in params.yaml."""

    row: Annotated[str, Field(min_length=1)]  # its name in the paper
    column: str | None = None  # in a grid
    encoder: LayerStack | None = None
    decoder: LayerStack | None = None
    attention: list[Positive] | None = None  # layers of `decoder` with it, from 1; null: all
    set: dict[str, Any] = Field(default={})  # further values of params.yaml, by dotted name
    perplexity: float | None = None  # the paper's figures
    bleu: float | None = None  # of tokenized text, before unknown words are replaced

    def overrides(self, base: ModelParams) -> dict[str, Any]:
        """Return the values of params.yaml that the row changes, by dotted name; `base` is its `model`."""
        values: dict[str, Any] = {}
        for side in ("encoder", "decoder"):
            if stack := getattr(self, side):
                values[f"model.{side}_widths"] = getattr(base, f"{side}_widths")[:1] * stack.layers
                values[f"model.{side}_kernels"] = [stack.kernel] * stack.layers
        if self.decoder:
            layers = range(1, self.decoder.layers + 1)
            values["model.attention"] = [
                self.attention is None or layer in self.attention for layer in layers
            ]
        return values | self.set


@dataclass(frozen=True)
class SweepRow:
    """A row of a sweep."""

    changes: dict[str, Any]  # values of params.yaml, by dotted name
    labels: dict[str, str]  # names of row and, in a grid, column, by title
    paper: dict[str, float | None]  # the paper's figures, by title


class SweepTable(Section):
    """A table of the paper, or a sweep of your own."""

    row: str = "row"  # what rows differ in
    column: str = "column"  # what columns differ in, in a grid
    rows: Annotated[list[TableRow], Field(min_length=1)]

    def list_rows(self, base: ModelParams) -> list[SweepRow]:
        """Return the rows for a `model` section of params.yaml."""
        return [
            SweepRow(
                changes=row.overrides(base),
                labels=self.label(row),
                paper={"perplexity, paper": row.perplexity, "bleu_tokenized, paper": row.bleu},
            )
            for row in self.rows
        ]

    def label(self, row: TableRow) -> dict[str, str]:
        """Return the names of a row and, in a grid, of its column, by title."""
        labels = {self.row: row.row}
        if row.column:
            labels[self.column] = row.column
        return labels


def list_tables() -> list[str]:
    """Return the names of the tables."""
    return sorted(path.stem for path in TABLES.glob("*.yaml"))


def read_table(name: str) -> SweepTable:
    """Read experiments/tables/NAME.yaml."""
    path = TABLES / f"{name}.yaml"
    if not path.is_file():
        hint = suggest(name, list_tables())
        raise FileNotFoundError(f"{TABLES}: expected a table, such as TABLE=table5, found {name!r}; {hint}")
    return validate(SweepTable, parse_yaml(read_text(path), str(path)), f"{path} is invalid")


def read_results(root: Path) -> dict[str, Any]:
    """Return the metrics of a finished experiment in a workspace, with test set and signature.

    `perplexity` and `bleu_tokenized` are means over seeds, the latter before unknown words are replaced, as
    in the paper (§5.4).
    """
    with Repo(str(root)) as repo:
        files = repo.metrics.show()[""]["data"]
    metrics: dict[str, Any] = {}
    for path, content in files.items():
        folder = Path(path).parent.name
        (row,) = pd.json_normalize(content["data"]).to_dict("records")
        prefix = "" if folder == "evaluation" else f"{folder}."
        metrics |= {f"{prefix}{name}": value for name, value in row.items()}
    perplexities = pd.Series(
        [value for name, value in metrics.items() if name.endswith(".validation_perplexity")]
    )
    plain = "without_replacement." if "without_replacement.mean.bleu_tokenized" in metrics else ""
    results = {
        "perplexity": perplexities.mean(), "perplexity, std": perplexities.std(),
        "bleu_tokenized": metrics.get(f"{plain}mean.bleu_tokenized"),
        "bleu_tokenized, std": metrics.get(f"{plain}std.bleu_tokenized"),
    }  # fmt: skip
    if (root / SIGNATURES).is_file():
        results["signature"] = read_json(root / SIGNATURES)["bleu_tokenized"]
        results["test_set"] = str(SetIdentity(**read_json(root / TEST_SET)))
    return results | metrics


def tabulate(
    rows: Mapping[str, SweepRow], results: Mapping[str, dict[str, Any]], base: Mapping[str, Any]
) -> pd.DataFrame:
    """Return a line per row: its labels, the paper's figures and ours, its values, then all else.

    Args:
        results: by experiment what `read_results` returns, or the reason of a failure as `failed`.
        base: the values of params.yaml, of which a row has those that only other rows change.
    """
    any_row = next(iter(rows.values()))
    first_columns = dict.fromkeys([*any_row.labels, "failed", *FIGURES])  # empty; they set the order
    changed = list_changed_keys(rows)
    lines = []
    for name, row in rows.items():
        values = {key: row.changes[key] if key in row.changes else find_value(key, base) for key in changed}
        lines.append(first_columns | row.labels | row.paper | values | results[name] | {"experiment": name})
    return pd.DataFrame(lines).dropna(axis="columns", how="all")


def list_changed_keys(rows: Mapping[str, SweepRow]) -> list[str]:
    """Return the names of the values that any row changes, in the order of the table."""
    return list(dict.fromkeys(key for row in rows.values() for key in row.changes))


def format_sweep(table: pd.DataFrame, rows: Mapping[str, SweepRow]) -> str:
    """Return the result of `tabulate` for a terminal: names, values in which rows differ, main figures."""
    labels = [label for row in rows.values() for label in row.labels]
    changed = [key for key in list_changed_keys(rows) if key in table and len({*map(str, table[key])}) > 1]
    columns = dict.fromkeys([*labels, *changed, *FIGURES, "mean.bleu", "failed", "experiment"])
    return table[[name for name in columns if name in table]].round(2).to_string(index=False)
