"""Flow `reproduce`: what `dvc repro` does, stages side by side."""

import sys
from typing import Any, Self

from prefect import flow, runtime
from prefect.states import State
from pydantic import model_validator

from pipelines import shell
from pipelines.flows import artifacts, experiment, workspace
from pipelines.flows.form import USUAL, RunParams, ValueParams, field
from pipelines.flows.graph import read_graph, restrict
from pipelines.flows.run_stages import THREADS, StagesRun, claimed_root
from pipelines.flows.summary import summarize
from pipelines.flows.workspace import ROOT


class ReproduceParams(RunParams, ValueParams):
    """With a preset or any other value than in params.yaml, the results become a DVC experiment."""

    targets: list[str] = field(
        "Stages", "to bring up to date, with all they need: train@1, evaluate; none: all", []
    )

    @model_validator(mode="after")
    def _experiments_are_whole(self) -> Self:
        if self.changes() and self.targets:
            raise ValueError(
                "overrides and targets: an experiment has the outputs of all stages; wanted one of the two"
            )
        return self


def run_name() -> str:
    """Return a flow run's name: data set, seeds and revision, and what is other than in params.yaml."""
    asked = ReproduceParams.model_validate(runtime.flow_run.parameters.get("params") or {})
    try:
        _, params = asked.written(ROOT)
    except (ValueError, FileNotFoundError):
        return "invalid parameters"
    seeds = f"seed{'s' * (len(params.train.seeds) > 1)} {', '.join(map(str, params.train.seeds))}"
    changes = "".join(
        f", {name}={value}" for name, value in asked.changes().items() if name != USUAL["seeds"]
    )
    return f"{params.package.name}, {seeds}, {workspace.revision(ROOT)}{changes}"


@flow(name="reproduce", flow_run_name=run_name, task_runner=THREADS, persist_result=False)
def reproduce(params: ReproduceParams = ReproduceParams()) -> State[Any]:  # noqa: B008
    """Bring every stage of dvc.yaml up to date, each as soon as its parents are and a place is free.

    The same as `dvc repro`, and with the same results: DVC is the truth. Trainings that share a CPU's cores
    have fewer threads each, so theirs can differ by rounding. The DAG is read from DVC; each stage is a task,
    whose state says whether DVC has Executed it, found it Unchanged or restored it (Cached).
    With overrides it runs in a copy of the workspace, and its results become an experiment (`dvc exp show`).
    """
    with claimed_root(params):
        root, name, changes = ROOT, "", params.changes()
        if changes:
            name = experiment.name_of(changes, workspace.snapshot(ROOT))
            root = experiment.copy_workspace(ROOT, name, *params.written(ROOT))
        stages = list(restrict(read_graph(root), params.targets).values())
        run = StagesRun(params, stages)
        state = run.run()
        scores = ""
        if state.is_completed() and any("scores.csv" in stage.outputs for stage in stages):
            scores = shell.run(sys.executable, "-m", "pipelines.report.scores", cwd=root)
        if scores and not params.targets:
            artifacts.show_report(root, name)
        if name and state.is_completed():
            experiment.keep_experiment(ROOT, root, name)
            scores += f"\nKept as the DVC experiment {name}: dvc exp show, dvc exp apply {name}"
        return summarize(run, state, scores.strip())
