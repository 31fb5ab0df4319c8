"""Flow `sweep`: a table of parameters, each row a DVC experiment."""

import itertools
import json
import math
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
from prefect import flow, get_run_logger, runtime
from prefect.artifacts import create_markdown_artifact, create_table_artifact
from prefect.states import Completed, Failed, State
from pydantic import Field, model_validator

from convs2s.config.load import load_params
from convs2s.text.corpus.files import atomic_path
from pipelines.flows import artifacts, dvc_stage, remote, workspace
from pipelines.flows.dvc_stage import StageEnded
from pipelines.flows.graph import Stage
from pipelines.flows.reproduce import THREADS, open_workspace
from pipelines.flows.run_stages import Run, RunParams, faults, summary
from pipelines.flows.watch import ended_early
from pipelines.flows.workspace import ROOT, Refused
from pipelines.results.paper import SPEED, Table, read_table

Overrides = dict[str, Any]
Cell = tuple[str, dict[str, Any], Overrides]
LONGEST_FAULT = 300  # characters in a table; the page of the run has all


class SweepParams(RunParams):
    """Parameters of the flow `sweep`."""

    name: str = Field(
        default="sweep",
        pattern=r"^[A-Za-z0-9][A-Za-z0-9-]*$",
        description="begins the experiments' names, and names the table",
    )
    table: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z0-9-]+$",
        description="a table of the paper, from experiments/tables/: table4, table5, table7, table8, figure2",
    )
    overrides: Overrides = Field(
        default={},
        description='other values than in params.yaml for all rows: {"train.seeds": [1, 2]}; where a row has '
        "one of its own, that counts",
    )
    configurations: list[Overrides] = Field(
        default=[],
        description='rows: [{"train.dropout": 0.1}, {"train.dropout": 0.2, "model.attention": []}]',
    )
    grid: dict[str, list[Any]] = Field(
        default={},
        description='all combinations: {"train.dropout": [0.1, 0.2], "translate.beam_size": [1, 5]}',
    )

    @model_validator(mode="after")
    def _something(self) -> "SweepParams":
        if self.table and (self.configurations or self.grid):
            raise ValueError(
                "table: its rows are in experiments/tables/; wanted neither configurations nor grid"
            )
        if not self.table and not self.configurations and not self.grid:
            raise ValueError("wanted a table, configurations or a grid: else there is nothing to sweep over")
        if self.targets:
            raise ValueError("targets: an experiment has the outputs of all stages; wanted none in a sweep")
        return self

    @property
    def title(self) -> str:
        """What experiments and files are named after."""
        return self.table or self.name

    def rows(self) -> list[Overrides]:
        """Return what each row changes: each of the list with each combination of the grid."""
        combined = [
            dict(zip(self.grid, values, strict=True)) for values in itertools.product(*self.grid.values())
        ]
        return [row | more for row in self.configurations or [{}] for more in combined]


def run_name() -> str:
    """Return a flow run's name: that of the sweep and the revision."""
    given = runtime.flow_run.parameters.get("params")
    given = given.model_dump() if isinstance(given, SweepParams) else given or {}
    return f"{given.get('table') or given.get('name', 'sweep')}, {workspace.revision(ROOT)}"


@flow(
    name="sweep",
    flow_run_name=run_name,
    task_runner=THREADS,
    persist_result=False,
)
def sweep(params: SweepParams) -> State[Any]:
    """Run the pipeline for every row of a table of parameters, side by side on the free GPUs.

    Each row runs in a copy of the workspace and becomes a DVC experiment. A stage that several rows have in
    common runs once; the others take it from DVC's cache. Ends with a table of scores: an artifact, and
    data/sweeps/NAME.csv; `dvc exp show` shows the same. Of a table of the paper it becomes that, with the
    published figures beside ours: NAME.md, NAME.png.
    """
    with workspace.claim(ROOT, f"sweep {runtime.flow_run.name}"):
        workspace.check_workspace(ROOT)
        if params.remote != "none":
            remote.check(ROOT, params.git_remote)
        tree, head = workspace.snapshot(ROOT), workspace.git(ROOT, "rev-parse", "HEAD")
        ablation = read_table(params.table, ROOT / "experiments" / "tables") if params.table else None
        rows = rows_of(ablation, params.overrides) if ablation else [({}, row) for row in params.rows()]
        cells = [
            (f"{params.title}-{workspace.name_of(row, tree)}", cell, row)
            for cell, row in ((cell, params.overrides | row) for cell, row in rows)
        ]
        names = {name: row for name, _, row in cells}
        labels = labels_of(names)
        if ablation:
            labels = {
                name: ", ".join(filter(None, (cell["row"], cell["column"])))
                for name, cell, _ in reversed(cells)
            }
        run = Run(params, {})
        spaces = {}
        for name, row in names.items():
            label = labels[name]
            root = workspace.copy_workspace(ROOT, name, row)
            spaces[label] = (name, open_workspace(label, root, params))
        run.workspaces = {label: space for label, (_, space) in spaces.items()}
        try:
            run.run()
        except StageEnded as ended:
            return ended_early(ended, summary(run))
        roots, speeds = [ROOT, *(space.root for _, space in spaces.values())], dict[str, float]()
        for label, (name, space) in spaces.items():
            if all((label, stage) in run.outcomes for stage in space.stages):
                for _, cell, _ in (one for one in cells if ablation and one[0] == name):
                    cell.update(grounds_of(space.root, space.stages))
                if (speed := speed_of(space.root, roots)) is not None:
                    speeds[name] = speed
                workspace.keep_experiment(ROOT, space.root, name)
        failures = {name: why for label, (name, _) in spaces.items() if (why := failure(run, label))}
        table = comparison(ROOT, head, cells, speeds, failures)
        show(table, params.title)
        if ablation:
            show_ablation(params.title, ablation, table)
    if not run.succeeded:
        return Failed(message=f"{summary(run)}\n\n{faults(run)}")
    return Completed(message=summary(run))


def rows_of(ablation: Table, overrides: Overrides) -> list[tuple[dict[str, Any], Overrides]]:
    """Return the rows of a table of the paper: what is told of each, and what that changes here.

    Raises:
        Refused: if the overrides do not fit params.yaml, from which with them the rows begin.
    """
    with TemporaryDirectory() as folder:
        path = Path(shutil.copy(ROOT / "params.yaml", folder))
        workspace.override(path, overrides)
        base = load_params(path)
    commit = workspace.revision(ROOT)
    return [
        (
            {"row": row.row, "column": row.column, **row.circumstances(base), "commit": commit},
            row.overrides(base.model),
        )
        for row in ablation.rows
    ]


def grounds_of(root: Path, stages: Mapping[str, Stage]) -> dict[str, str]:
    """Return test set and signature of the scores, which mean little without; nothing where none are told."""
    if "evaluate" not in stages:
        return {}
    try:
        paths = [root / stages["evaluate"].output(name) for name in ("test_set.json", "signatures.json")]
    except KeyError:
        return {}
    test_set, signatures = (json.loads(path.read_text(encoding="utf-8")) for path in paths)
    told = "{name}: {lines:,} lines, sha256 {sha256}".format(**test_set)
    return {"test_set": told, "signature": signatures["bleu_tokenized"]}


def speed_of(root: Path, others: Sequence[Path]) -> float | None:
    """Return target tokens a second of a row's trainings, which may have run in the copy of another row."""
    from pipelines.results import costs  # noqa: PLC0415  # torch takes its time

    return costs.speed_of(root, others)


def failure(run: Run, label: str) -> str:
    """Return why a row has no results, in one line; nothing if it has."""
    missing = [stage for stage in run.workspaces[label].stages if (label, stage) not in run.outcomes]
    if not missing:
        return ""
    told = [f"{stage} {run.faults[label, stage]}" for stage in missing if (label, stage) in run.faults]
    # A stage that rows have in common fails in the one that runs it.
    line = " ".join(("; ".join(told) or f"a stage of another row, before {missing[0]}, failed").split())
    return line if len(line) <= LONGEST_FAULT else f"... {line[-LONGEST_FAULT:]}"


def labels_of(names: Mapping[str, Overrides]) -> dict[str, str]:
    """Return what tells rows apart in the pages, by experiment: short names of values if these do."""
    short = {
        name: ", ".join(f"{k.split('.')[-1]}={v}" for k, v in row.items()) for name, row in names.items()
    }
    if len(set(short.values())) == len(short):
        return short
    return {name: ", ".join(f"{k}={v}" for k, v in row.items()) for name, row in names.items()}


def comparison(
    root: Path,
    commit: str,
    cells: Sequence[Cell],
    speeds: Mapping[str, float],
    failures: Mapping[str, str],
) -> pd.DataFrame:
    """Return a row per experiment: what was overridden, then its metrics as `dvc exp show` gives them.

    The means over seeds come first, then the speed of training, each seed, each training, and the corpus.

    Args:
        commit: that the experiments began with; the user may have committed more since.
        cells: an experiment's name, what a table tells of it, and what it overrides.
        speeds: target tokens a second of an experiment's trainings, by its name, where known.
        failures: why there are no results of an experiment, by its name; then column `failed` has it.

    Raises:
        Refused: if DVC fails.
    """
    shown = subprocess.run(
        [*dvc_stage.DVC, "exp", "show", "--json", "--rev", commit],
        cwd=root,
        env=dvc_stage.environment(None),
        capture_output=True,
        text=True,
        check=False,
    )
    if shown.returncode:
        raise Refused(f"dvc exp show failed in {root}: {shown.stderr.strip()}")
    found = {
        experiment["revs"][0]["name"]: experiment["revs"][0]["data"]["metrics"]
        for baseline in json.loads(shown.stdout)
        for experiment in baseline["experiments"] or []
        if experiment["revs"] and experiment["revs"][0].get("data")
    }
    unseen = {name: "dvc exp show does not have it" for name, _, _ in cells if name not in found}
    failed = {**unseen, **failures}
    rows = [
        {"experiment": name, **cell, **row}
        | ({"failed": failed[name]} if name in failed else flat_metrics(found[name]))
        | {SPEED: speeds.get(name, math.nan)}
        for name, cell, row in cells
    ]
    keys = (key for _, cell, row in cells for key in (*cell, *row, "failed"))
    settings = list(dict.fromkeys(["experiment", *keys]))
    table = pd.DataFrame(rows)
    return table[sorted(table.columns, key=lambda column: importance(str(column), settings))]


def flat_metrics(files: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metrics of all files, dotted; those of one training after its folder's name."""
    flat: dict[str, Any] = {}
    for path, content in files.items():
        folder = Path(path).parent.name
        prefix = "" if folder == "evaluation" else f"{folder}."
        for _, row in pd.json_normalize(content.get("data", {})).iterrows():
            flat |= {prefix + str(name): value for name, value in row.items()}
    return flat


def importance(column: str, settings: Sequence[str]) -> tuple[int, int]:
    """Return what a column is sorted by; columns of the same rank keep DVC's order."""
    if column in settings:
        return 0, settings.index(column)
    ranks = ("mean.", "std.", "ensemble.", SPEED, "seeds.", "")
    rank = next(rank for rank, prefix in enumerate(ranks) if column.startswith(prefix))
    return 1 + rank + column.startswith("filtered."), 0  # the corpus is the same in most sweeps


def show(table: pd.DataFrame, name: str) -> None:
    """Write the table as CSV and show it in the UI."""
    with atomic_path(ROOT / "data" / "sweeps" / f"{name}.csv") as path:
        table.to_csv(path, index=False)
    records = json.loads(table.to_json(orient="records"))
    create_table_artifact(records, key=artifacts.key("sweep", name), description=f"Sweep {name}")
    get_run_logger().info("\n%s", table.iloc[:, :9].to_string(index=False))


def show_ablation(name: str, ablation: Table, table: pd.DataFrame) -> None:
    """Write the paper's table with ours beside it, and show it and its picture in the UI."""
    from pipelines.results import ablation_report  # noqa: PLC0415  # matplotlib takes its time

    text, picture = ablation_report.write(name, ablation, table, ROOT / "data" / "sweeps")
    create_markdown_artifact(text, key=artifacts.key("table", name), description=ablation.title)
    artifacts.image(picture, artifacts.key("picture", name), ablation.title)
    get_run_logger().info("\n%s", text)
