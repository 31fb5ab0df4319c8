"""Flow `sweep`: a table of parameters, each row a DVC experiment."""

import itertools
import json
import shlex
from collections.abc import Sequence
from typing import Annotated, Any, Self

import pandas as pd
from prefect import flow, get_run_logger, runtime
from prefect.artifacts import create_markdown_artifact, create_table_artifact
from prefect.states import State
from pydantic import BeforeValidator, Field, PlainSerializer, WithJsonSchema, model_validator

from convs2s.config.params import Params
from convs2s.text.corpus.files import atomic_path
from pipelines.flows import artifacts, experiment, workspace
from pipelines.flows.form import AS_LIST, Form, RunParams, ValueParams, field, read_values, write_values
from pipelines.flows.graph import Stage, read_graph
from pipelines.flows.run_stages import THREADS, StagesRun, claimed_root, went_wrong
from pipelines.flows.summary import summarize
from pipelines.flows.workspace import ROOT
from pipelines.results.comparison import Row, comparison, labels_of, results_of
from pipelines.results.paper import Table, read_table, table_names

TableName = Annotated[str, Field(pattern=r"^[A-Za-z0-9-]+$")]
Configuration = Annotated[
    dict[str, Any],
    BeforeValidator(lambda row: read_values(shlex.split(row) if isinstance(row, str) else row)),
    PlainSerializer(lambda row: shlex.join(write_values(row))),
    WithJsonSchema({"type": "string"}),
]
LONGEST_FAULT = 300  # characters in the table; the run's page shows the whole message


class RowParams(Form):
    """What differs between the rows of a sweep. As the last base class, its fields come first in the form."""

    table: Annotated[TableName | None, WithJsonSchema({"type": "string", "enum": table_names()})] = field(
        "Table of the paper", "a file in experiments/tables"
    )
    configurations: list[Configuration] = field(
        "Rows",
        "used if no table is chosen, each as NAME=VALUE NAME=VALUE: train.dropout=0.2 model.attention=[]",
        [],
    )
    grid: Annotated[dict[str, list[Any]], *AS_LIST] = field(
        "Grid", "all combinations, each as NAME=[VALUE,VALUE]: train.dropout=[0.1,0.2]", {}
    )
    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9-]*$")] = field(
        "Name", "of the experiments and the table of results, unless a table of the paper is chosen", "sweep"
    )


class SweepParams(RunParams, ValueParams, RowParams):
    """Rows, and values common to all of them; a row's own value takes precedence."""

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
        """Prefix of experiment names, and name of the files."""
        return self.table or self.name

    def rows(self) -> list[dict[str, Any]]:
        """Return what each row changes: every configuration with every combination of the grid."""
        combined = [dict(zip(self.grid, v, strict=True)) for v in itertools.product(*self.grid.values())]
        return [row | more for row in self.configurations or [{}] for more in combined]


def run_name() -> str:
    """Return a flow run's name: that of the sweep and the revision."""
    params = SweepParams.model_validate(runtime.flow_run.parameters["params"])
    return f"{params.title}, {workspace.revision(ROOT)}"


@flow(name="sweep", flow_run_name=run_name, task_runner=THREADS, persist_result=False)
def sweep(params: SweepParams) -> State[Any]:
    """Run the pipeline for every row of a table of parameters, in parallel on the available GPUs.

    Each row runs in a copy of the workspace and becomes a DVC experiment. A stage that several rows share
    runs once; the others restore it from DVC's cache. The result is a table of scores, as an artifact and in
    data/sweeps/NAME.csv; `dvc exp show` shows the same scores. For a table of the paper, NAME.md and NAME.png
    show the published figures next to ours.
    """
    with claimed_root(params):
        paper = read_table(params.table) if params.table else None
        base = params.written(ROOT)[1]
        found = paper_rows(paper, base) if paper else [({}, row) for row in params.rows()]
        tree, rows, copies = workspace.snapshot(ROOT), list[Row](), dict[str, dict[str, Any]]()
        for facts, own in found:
            name = f"{params.title}-{experiment.name_of(params.changes() | own, tree)}"
            rows.append(Row(name, params.changes() | own, facts))
            copies[name] = own
        labels, stages = labels_of(rows), dict[str, list[Stage]]()
        for name, own in copies.items():
            root = experiment.copy_workspace(ROOT, name, *params.written(ROOT, own))
            stages[name] = list(read_graph(root, labels[name]).values())
        run = StagesRun(params, [stage for row in stages.values() for stage in row])
        state = run.run()
        if not (state.is_completed() or state.is_failed()):  # cancelled, or its worker has died
            return summarize(run, state)
        results = {name: results_or_fault(run, row) for name, row in stages.items()}
        for name, row in stages.items():
            if "failed" not in results[name]:
                experiment.keep_experiment(ROOT, row[0].root, name)
        table = comparison(rows, results)
        show(table, params.title, paper)
        return summarize(run, state, table.iloc[:, :9].to_string(index=False))


def paper_rows(paper: Table, base: Params) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Return the rows of a table of the paper: each row's labels, and its parameter changes."""
    of_all = {"commit": workspace.revision(ROOT), "corpus": base.package.name}
    return [
        ({"row": row.row, "column": row.column} | of_all, row.overrides(base.model)) for row in paper.rows
    ]


def results_or_fault(run: StagesRun, row: Sequence[Stage]) -> dict[str, Any]:
    """Return a row's results, or under the key `failed`, the reason why it has none."""
    states = {stage.name: run.states()[stage.title()] for stage in row}
    missing = [name for name, state in states.items() if not state.is_completed()]
    if not missing:
        return results_of(row[0].root, [ROOT, *dict.fromkeys(stage.root for stage in run.stages)])
    faults = [f"{name} {states[name].message}" for name in missing if went_wrong(states[name])]
    # A stage that rows share fails in the row that runs it.
    line = " ".join(("; ".join(faults) or f"a stage of another row, before {missing[0]}, failed").split())
    return {"failed": line if len(line) <= LONGEST_FAULT else f"... {line[-LONGEST_FAULT:]}"}


def show(table: pd.DataFrame, name: str, paper: Table | None) -> None:
    """Write the table as CSV, and next to the paper's if there is one, and show both in the UI."""
    folder = ROOT / "data" / "sweeps"
    with atomic_path(folder / f"{name}.csv") as path:
        table.to_csv(path, index=False)
    records = json.loads(table.to_json(orient="records"))
    create_table_artifact(records, key=artifacts.key(4, "sweep", name), description=f"Sweep {name}")
    if paper:
        from pipelines.results import ablation_report  # noqa: PLC0415  # matplotlib is slow to load

        text, picture = ablation_report.write(name, paper, table, folder)
        create_markdown_artifact(text, key=artifacts.key(5, "table", name), description=paper.title)
        artifacts.image(picture, artifacts.key(6, "picture", name), paper.title)
        get_run_logger().info("\n%s", text)
