"""Flow `reproduce`: does the work of `dvc repro`, with stages in parallel."""

import sys
from typing import Any, Self

from prefect import flow, runtime
from prefect.states import State
from pydantic import model_validator

from pipelines import shell
from pipelines.flows import artifacts, experiment, workspace
from pipelines.flows.form import USUAL, RunParams, ValueParams, field
from pipelines.flows.graph import read_graph, restrict
from pipelines.flows.run_stages import THREADS, StagesRun, claim
from pipelines.flows.workspace import ROOT


class ReproduceParams(RunParams, ValueParams):
    """With a preset or any value that replaces one of params.yaml, the results become a DVC experiment."""

    targets: list[str] = field(
        "Stages",
        "bring only these and their ancestors up to date, such as train@1 or evaluate; if empty, all",
        [],
    )

    @model_validator(mode="after")
    def _experiments_are_whole(self) -> Self:
        if self.changes() and self.targets:
            raise ValueError("expected overrides or targets, not both: an experiment has all stages' outputs")
        return self


def run_name() -> str:
    """Return a flow run's name: data set, seeds, revision, and what differs from params.yaml."""
    asked = ReproduceParams.model_validate(runtime.flow_run.parameters.get("params") or {})
    try:
        _, params = asked.render(ROOT)
    except (ValueError, FileNotFoundError):
        return "invalid parameters"
    seeds = f"seed{'s' * (len(params.seeds) > 1)} {', '.join(map(str, params.seeds))}"
    changes = "".join(
        f", {name}={value}" for name, value in asked.changes().items() if name != USUAL["seeds"]
    )
    return f"{params.package.name}, {seeds}, {workspace.revision(ROOT)}{changes}"


@flow(name="reproduce", flow_run_name=run_name, task_runner=THREADS, persist_result=False)
def reproduce(params: ReproduceParams = ReproduceParams()) -> State[Any]:  # noqa: B008
    """Bring every stage of dvc.yaml up to date, each as soon as its parents are and resources are free.

    This does the same as `dvc repro`, except that trainings that share a CPU's cores have fewer threads each,
    so their results can differ by rounding. A stage's final state says what DVC did: Executed, Unchanged, or
    Cached (restored). With overrides, the results become a DVC experiment (`dvc exp show`).
    """
    with claim(ROOT):
        root, name, (text, values) = ROOT, "", params.render(ROOT)  # which checks params.yaml
        if changes := params.changes():
            name = experiment.name_of(changes, workspace.snapshot(ROOT))
            root = experiment.copy_workspace(ROOT, experiment.name_of(changes), text, values)
        stages = list(restrict(read_graph(root), params.targets).values())
        run = StagesRun(params, stages, [values.package.name])
        state = run.run()
        scores = ""
        if state.is_completed() and any("scores.csv" in stage.outputs for stage in stages):
            command = [sys.executable, "-m", "pipelines.report.scores", *["--experiment", name] * bool(name)]
            scores = shell.run(*command, cwd=root)
        if scores and not params.targets:
            artifacts.show_report(root, name)
        if name and state.is_completed():
            experiment.keep_experiment(ROOT, root, name)
            scores += f"\nSaved as the DVC experiment {name}: dvc exp show, dvc exp apply {name}"
        return run.show_summary(state, scores.strip())
