"""Flow `sweep`: a table of parameters, each row a DVC experiment."""

import itertools
import json
import shlex
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, Self

from prefect import flow, runtime
from prefect.artifacts import create_table_artifact
from prefect.states import State
from pydantic import BeforeValidator, Field, PlainSerializer, WithJsonSchema, model_validator

from convs2s.base.files import atomic_path
from pipelines.flows import artifacts, experiment, workspace
from pipelines.flows.form import NAMED, Form, RunParams, ValueParams, field, read_values, write_values
from pipelines.flows.graph import Stage, read_graph
from pipelines.flows.run_stages import THREADS, StagesRun, claim, went_wrong
from pipelines.flows.workspace import ROOT
from pipelines.sweep_table import Row, compare, label_rows, list_tables, read_results, read_table

TableName = Annotated[str, Field(pattern=r"^[A-Za-z0-9-]+$")]
Configuration = Annotated[
    dict[str, Any],
    BeforeValidator(lambda row: read_values(shlex.split(row) if isinstance(row, str) else row)),
    PlainSerializer(lambda row: shlex.join(write_values(row))),
    WithJsonSchema({"type": "string"}),
]
LONGEST_FAULT = 300  # last characters of it in the table; the run's page shows the whole message


class RowParams(Form):
    """What differs between the rows of a sweep. As the last base class, its fields come first in the form."""

    table: Annotated[TableName | None, WithJsonSchema({"type": "string", "enum": list_tables()})] = field(
        "Table of the paper", "a file in experiments/tables"
    )
    configurations: list[Configuration] = field(
        "Rows",
        "used if no table is chosen, each as NAME=VALUE NAME=VALUE: train.dropout=0.2 model.attention=[]",
        [],
    )
    grid: Annotated[dict[str, list[Any]], *NAMED] = field(
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
            raise ValueError("expected a table, or configurations and grid, not both")
        if not self.table and not self.configurations and not self.grid:
            raise ValueError("expected a table, configurations or a grid, found nothing to sweep over")
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
    data/sweeps/NAME.csv, for a table of the paper with the published figures next to ours; `dvc exp show`
    shows the same scores.
    """
    with claim(ROOT):
        base = params.render(ROOT)[1]
        found = read_table(params.table).list_rows(base.model) if params.table else map(Row, params.rows())
        tree, rows, copies = workspace.snapshot(ROOT), dict[str, Row](), dict[str, Row]()
        for row in found:
            changes = params.changes() | row.changes
            name = f"{params.title}-{experiment.name_of(changes, tree)}"
            rows[name], copies[name] = replace(row, changes=changes), row
        labels, stages = label_rows(rows), dict[str, list[Stage]]()
        for name, row in copies.items():
            folder = f"{params.title}-{experiment.name_of(rows[name].changes)}"
            root = experiment.copy_workspace(ROOT, folder, *params.render(ROOT, row.changes))
            stages[name] = list(read_graph(root, labels[name]).values())
        run = StagesRun(params, [stage for row in stages.values() for stage in row], [base.package.name])
        state = run.run()
        if not (state.is_completed() or state.is_failed()):  # cancelled, or its worker has died
            return run.show_summary(state)
        results = {name: results_or_fault(run, row) for name, row in stages.items()}
        for name in rows:
            if "failed" not in results[name]:
                experiment.keep_experiment(ROOT, stages[name][0].root, name)
        table = compare(rows, results)
        with atomic_path(ROOT / "data" / "sweeps" / f"{params.title}.csv") as path:
            table.to_csv(path, index=False)
        records, key = json.loads(table.to_json(orient="records")), artifacts.key(4, "sweep", params.title)
        artifacts.create(create_table_artifact, records, key, f"Sweep {params.title}")
        return run.show_summary(state, table.iloc[:, :9].to_string(index=False))


def results_or_fault(run: StagesRun, row: Sequence[Stage]) -> dict[str, Any]:
    """Return a row's results, or under the key `failed`, the reason why it has none."""
    states = {stage.name: run.states()[stage.title()] for stage in row}
    if all(state.is_completed() for state in states.values()):
        return read_results(row[0].root)
    faults = [f"{name} {state.message}" for name, state in states.items() if went_wrong(state)]
    line = "; ".join(faults) or "a stage failed in another row, which shares it"
    return {"failed": " ".join(line.split())[-LONGEST_FAULT:]}
