"""Flow `sweep`: a table of parameters, each row a DVC experiment."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from prefect import flow, get_run_logger, runtime
from prefect.artifacts import create_table_artifact
from prefect.states import Cancelled, State
from pydantic import Field

from convs2s.base.files import atomic_path
from pipelines.flows import experiment, workspace
from pipelines.flows.cancellation import stop_if_cancelled
from pipelines.flows.form import RunParams
from pipelines.flows.graph import Stage, read_graph
from pipelines.flows.run_stages import THREADS, StagesRun, faults
from pipelines.flows.workspace import ROOT
from pipelines.later_keys import check_record
from pipelines.sweep_table import SweepRow, format_sweep, list_tables, read_results, read_table, tabulate


class SweepParams(RunParams):
    """A table; overrides apply to all of its rows, but a row's own value takes precedence."""

    table: str = Field(
        description="a file in experiments/tables",
        pattern=r"^[A-Za-z0-9-]+$",
        json_schema_extra={"enum": [*list_tables()]},
    )


def run_name() -> str:
    """Return a flow run's name: its table and the revision."""
    params = SweepParams.model_validate(runtime.flow_run.parameters["params"])
    return ", ".join([params.table, workspace.revision(ROOT), *params.overrides])


@flow(name="sweep", flow_run_name=run_name, task_runner=THREADS, persist_result=False)
def sweep(params: SweepParams) -> State[Any]:
    """Run the pipeline for every row of a table of parameters, in parallel on the available GPUs.

    Each row runs in a copy of the workspace and becomes a DVC experiment. A stage that several rows share
    runs once; the others restore it from DVC's cache. The result is a table of scores, as an artifact and in
    data/sweeps/TABLE.csv, with the published figures, if there are any, next to ours.
    """
    with experiment.claim(ROOT), stop_if_cancelled() as stop:
        _, base = params.render(ROOT)
        check_record(ROOT)
        tree = workspace.snapshot(ROOT)
        rows: dict[str, SweepRow] = {}  # by name of the experiment
        stages: dict[str, list[Stage]] = {}  # likewise
        for row in read_table(params.table).list_rows(base.model):
            changes = add_overrides(row.changes, params.changes())
            name = f"{params.table}-{experiment.experiment_name(changes, tree)}"
            rows[name] = replace(row, changes=changes)
            folder = f"{params.table}-{experiment.experiment_name(changes)}"
            text, values = params.render(ROOT, row.changes)
            root = experiment.copy_workspace(ROOT, folder, text, values)
            stages[name] = list(read_graph(root, ", ".join(row.labels.values())).values())
        run = StagesRun(params, [stage for row_stages in stages.values() for stage in row_stages], stop)
        state = run.run()
        if stop.is_set():
            return state
        results = {name: results_or_fault(run, row_stages) for name, row_stages in stages.items()}
        for name in rows:
            if "failed" not in results[name]:
                experiment.keep_experiment(ROOT, stages[name][0].root, name)
        table = tabulate(rows, results, base.model_dump(mode="json"))
        with atomic_path(ROOT / "data" / "sweeps" / f"{params.table}.csv") as path:
            table.to_csv(path, index=False)
        get_run_logger().info("\n%s", format_sweep(table, rows))
        records = json.loads(table.to_json(orient="records"))
        create_table_artifact(records, f"sweep-{params.table.lower()}")
    return Cancelled(message=state.message) if stop.is_set() else state


def add_overrides(row: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a row, then the overrides of other keys.

    The row's own come first, because the name of an experiment lists the values and is cut after a few; those
    that all rows share would not tell the rows apart.
    """
    return {**row, **{key: value for key, value in overrides.items() if key not in row}}


def results_or_fault(run: StagesRun, row: list[Stage]) -> dict[str, Any]:
    """Return a row's results, or under the key `failed`, the reason why it has none."""
    states = {stage.name: run.states()[stage.title()] for stage in row}
    if all(state.is_completed() for state in states.values()):
        return read_results(row[0].root)
    return {"failed": "; ".join(faults(states)) or "a stage failed in another row, which shares it"}
