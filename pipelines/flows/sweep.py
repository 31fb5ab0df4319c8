"""Flow `sweep`: a table of parameters, each row a DVC experiment."""

import itertools
import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Self

import pandas as pd
from dvc.repo import Repo
from prefect import flow, get_run_logger, runtime
from prefect.artifacts import create_table_artifact
from prefect.states import State
from pydantic import (
    BeforeValidator,
    Field,
    PlainSerializer,
    WithJsonSchema,
    model_validator,
)

from convs2s.text.corpus.files import atomic_path
from pipelines.flows import artifacts, experiment, paper_table, workspace
from pipelines.flows.form import AS_LIST, Form, RunParams, ValueParams, read_values, write_values
from pipelines.flows.run_stages import THREADS, StagesRun, Workspace, claimed_root, went_wrong
from pipelines.flows.summary import Summary
from pipelines.flows.workspace import ROOT
from pipelines.results.paper import SPEED, read_table, table_names

TableName = Annotated[str, Field(pattern=r"^[A-Za-z0-9-]+$")]
Configuration = Annotated[
    dict[str, Any],
    BeforeValidator(lambda row: read_values(shlex.split(row) if isinstance(row, str) else row)),
    PlainSerializer(lambda row: shlex.join(write_values(row))),
    WithJsonSchema({"type": "string"}),
]
LONGEST_FAULT = 300  # characters in a table; the page of the run has all


class RowParams(Form):
    """What differs between the rows of a sweep."""

    table: Annotated[TableName | None, WithJsonSchema({"type": "string", "enum": table_names()})] = Field(
        default_factory=lambda: None, title="Table of the paper", description="from experiments/tables"
    )
    configurations: list[Configuration] = Field(
        default=[],
        title="Rows",
        description="instead of a table, each as NAME=VALUE NAME=VALUE: train.dropout=0.2 model.attention=[]",
    )
    grid: Annotated[dict[str, list[Any]], *AS_LIST] = Field(
        default={},
        title="Grid",
        description="all combinations, each as NAME=[VALUE,VALUE]: train.dropout=[0.1,0.2]",
    )
    name: str = Field(
        default="sweep",
        pattern=r"^[A-Za-z0-9][A-Za-z0-9-]*$",
        title="Name",
        description="of experiments and table, where no table of the paper gives them one",
    )


class SweepParams(RunParams, ValueParams, RowParams):
    """Rows, and values for all of them; where a row has one of its own, that counts."""

    @model_validator(mode="after")
    def _something(self) -> Self:
        if self.table and (self.configurations or self.grid):
            raise ValueError(
                "table: its rows are in experiments/tables/; wanted neither configurations nor grid"
            )
        if not self.table and not self.configurations and not self.grid:
            raise ValueError("wanted a table, configurations or a grid: else there is nothing to sweep over")
        return self

    @property
    def title(self) -> str:
        """What experiments and files are named after."""
        return self.table or self.name

    def rows(self) -> list[dict[str, Any]]:
        """Return what each row changes: each of the list with each combination of the grid."""
        combined = [
            dict(zip(self.grid, values, strict=True)) for values in itertools.product(*self.grid.values())
        ]
        return [row | more for row in self.configurations or [{}] for more in combined]


@dataclass
class Row:
    """A row of the table: its experiment, what it overrides, and what the paper's table says of it."""

    experiment: str
    overrides: dict[str, Any]
    facts: dict[str, Any]


def run_name() -> str:
    """Return a flow run's name: that of the sweep and the revision."""
    params = SweepParams.model_validate(runtime.flow_run.parameters["params"])
    return f"{params.title}, {workspace.revision(ROOT)}"


@flow(name="sweep", flow_run_name=run_name, task_runner=THREADS, persist_result=False)
def sweep(params: SweepParams) -> State[Any]:
    """Run the pipeline for every row of a table of parameters, side by side on the free GPUs.

    Each row runs in a copy of the workspace and becomes a DVC experiment. A stage that several rows have in
    common runs once; the others take it from DVC's cache. Ends with a table of scores: an artifact, and
    data/sweeps/NAME.csv; `dvc exp show` shows the same. Of a table of the paper it becomes that, with the
    published figures beside ours: NAME.md, NAME.png.
    """
    with claimed_root(params):
        paper = read_table(params.table) if params.table else None
        base = params.written(ROOT)[1]
        found = paper_table.rows_of(paper, base) if paper else [({}, row) for row in params.rows()]
        tree, rows, copies = workspace.snapshot(ROOT), list[Row](), dict[str, dict[str, Any]]()
        for facts, own in found:
            overrides = params.changes() | own
            name = f"{params.title}-{experiment.name_of(overrides, tree)}"
            rows.append(Row(name, overrides, facts))
            copies[name] = own
        labels, spaces = labels_of(rows), dict[str, Workspace]()
        for name, own in copies.items():
            root = experiment.copy_workspace(ROOT, name, *params.written(ROOT, own))
            spaces[name] = Workspace.open(labels[name], root, [])
        run = StagesRun(params, list(spaces.values()))
        summary = Summary(run)
        state = run.run()
        if not (state.is_completed() or state.is_failed()):  # cancelled, or its worker is gone
            summary.finish(state)
            return state
        results = {name: results_of(run, space) for name, space in spaces.items()}
        for name, space in spaces.items():
            if "failed" not in results[name]:
                experiment.keep_experiment(ROOT, space.root, name)
        table = comparison(rows, results)
        show(table, params.title)
        if paper:
            paper_table.show_table(params.title, paper, table)
        summary.finish(state, table.iloc[:, :9].to_string(index=False))
    return state


def labels_of(rows: Sequence[Row]) -> dict[str, str]:
    """Return the labels of experiments in the UI: the paper's words, or values by short names."""
    if rows[0].facts:
        return {
            row.experiment: ", ".join(filter(None, (row.facts["row"], row.facts["column"])))
            for row in reversed(rows)
        }
    for parts in (-1, 0):  # the last part of a dotted name, or all
        labels = {
            row.experiment: ", ".join(
                f"{'.'.join(k.split('.')[parts:])}={v}" for k, v in row.overrides.items()
            )
            for row in rows
        }
        if len(set(labels.values())) == len(labels):
            break
    return labels


def results_of(run: StagesRun, space: Workspace) -> dict[str, Any]:
    """Return a row's metrics, with test set and speed of its trainings; or why it has none, as `failed`."""
    states = {stage: run.states()[space.title(stage)] for stage in space.stages}
    if missing := [stage for stage, state in states.items() if not state.is_completed()]:
        faults = [f"{stage} {states[stage].message}" for stage in missing if went_wrong(states[stage])]
        # A stage that rows have in common fails in the one that runs it.
        line = "; ".join(faults) or f"a stage of another row, before {missing[0]}, failed"
        line = " ".join(line.split())
        return {"failed": line if len(line) <= LONGEST_FAULT else f"... {line[-LONGEST_FAULT:]}"}
    with Repo(str(space.root)) as repo:
        metrics = flat_metrics(repo.metrics.show()[""]["data"])
    others = [ROOT, *(other.root for other in run.workspaces)]
    return metrics | paper_table.facts_of(space.root, space.stages, others)


def comparison(rows: Sequence[Row], results: Mapping[str, Mapping[str, Any]]) -> pd.DataFrame:
    """Return the table: what each row overrides, why it failed or its metrics, means over seeds first."""
    table = pd.DataFrame(
        {"experiment": row.experiment, **row.facts, **row.overrides, SPEED: None, **results[row.experiment]}
        for row in rows
    )
    settings = {"experiment", "failed", *(key for row in rows for key in (*row.facts, *row.overrides))}

    def rank(column: str) -> tuple[bool, ...]:
        return column not in settings, not column.startswith("mean."), column != SPEED

    columns = sorted(map(str, table.columns), key=rank)
    return table[columns]


def flat_metrics(files: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metrics of all files, dotted; those of one training after its folder's name."""
    flat: dict[str, Any] = {}
    for path, content in files.items():
        folder = Path(path).parent.name
        prefix = "" if folder == "evaluation" else f"{folder}."
        for row in pd.json_normalize(content.get("data", {})).to_dict("records"):
            flat |= {f"{prefix}{name}": value for name, value in row.items()}
    return flat


def show(table: pd.DataFrame, name: str) -> None:
    """Write the table as CSV and show it in the UI."""
    with atomic_path(ROOT / "data" / "sweeps" / f"{name}.csv") as path:
        table.to_csv(path, index=False)
    records = json.loads(table.to_json(orient="records"))
    create_table_artifact(records, key=artifacts.key(4, "sweep", name), description=f"Sweep {name}")
    get_run_logger().info("\n%s", table.iloc[:, :9].to_string(index=False))
