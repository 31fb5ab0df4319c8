"""Flow `reproduce`: what `dvc repro` does, stages side by side."""

from typing import Any, Self

from prefect import flow, get_run_logger, runtime
from prefect.states import State
from pydantic import Field, model_validator

from convs2s.config.load import load_params
from pipelines.flows import artifacts, experiment, workspace
from pipelines.flows.run_stages import THREADS, RunParams, StagesRun, Workspace, claimed_root
from pipelines.flows.workspace import ROOT


class ReproduceParams(RunParams):
    """Parameters of the flow `reproduce`."""

    overrides: dict[str, Any] = Field(
        default={},
        description='other values than in params.yaml: {"train.dropout": 0.3}; kept as a DVC experiment',
    )

    @model_validator(mode="after")
    def _experiments_are_whole(self) -> Self:
        if self.overrides and self.targets:
            raise ValueError(
                "overrides and targets: an experiment has the outputs of all stages; wanted one of the two"
            )
        return self


def run_name() -> str:
    """Return a flow run's name: data set, seeds and revision, and what was overridden."""
    overrides = ReproduceParams.model_validate(runtime.flow_run.parameters.get("params") or {}).overrides
    try:
        params = load_params(ROOT / "params.yaml")
    except (ValueError, FileNotFoundError):
        return "invalid params.yaml"
    seeds = str(overrides.get("train.seeds", list(params.train.seeds))).strip("[]")
    changes = "".join(f", {name}={value}" for name, value in overrides.items() if name != "train.seeds")
    return f"{params.package.name}, seeds {seeds}, {workspace.revision(ROOT)}{changes}"


@flow(name="reproduce", flow_run_name=run_name, task_runner=THREADS, persist_result=False)
def reproduce(params: ReproduceParams = ReproduceParams()) -> State[Any]:  # noqa: B008
    """Bring every stage of dvc.yaml up to date, each as soon as its parents are and a place is free.

    The same as `dvc repro`, and with the same results: DVC is the truth. Its DAG is read from DVC; each stage
    is a task, whose state says whether DVC has Executed it, found it Unchanged or restored it (Cached).
    With overrides it runs in a copy of the workspace, and its results become an experiment (`dvc exp show`).
    """
    with claimed_root(params):
        root, name = ROOT, ""
        if params.overrides:
            name = experiment.name_of(params.overrides, workspace.snapshot(ROOT))
            root = experiment.copy_workspace(ROOT, name, params.overrides)
        space = Workspace.open("", root, params.targets)
        state = StagesRun(params, [space]).run()
        if state.is_completed() and not params.targets:
            artifacts.show_report(space.stages.values(), root, name)
        if name and state.is_completed():
            experiment.keep_experiment(ROOT, root, name)
            get_run_logger().info("Kept as the DVC experiment %s: dvc exp show, dvc exp apply %s", name, name)
    return state
