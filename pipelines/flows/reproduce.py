"""Flow `reproduce`: what `dvc repro` does, stages side by side."""

from typing import Any, Self

from prefect import flow, get_run_logger, runtime
from prefect.states import Completed, Failed, State
from prefect.task_runners import ThreadPoolTaskRunner
from pydantic import Field, model_validator

from convs2s.config.load import load_params
from pipelines.flows import remote, workspace
from pipelines.flows.dvc_stage import StageEnded
from pipelines.flows.run_stages import Run, RunParams, Workspace, faults, summary
from pipelines.flows.watch import ended_early
from pipelines.flows.workspace import ROOT, Refused

THREADS: Any = ThreadPoolTaskRunner(max_workers=256)
"""A thread for each stage that runs; it only waits for a child process."""


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
    given = runtime.flow_run.parameters.get("params") or {}
    overrides = given.overrides if isinstance(given, ReproduceParams) else given.get("overrides", {})
    try:
        params = load_params(ROOT / "params.yaml")
    except (ValueError, FileNotFoundError):
        return "invalid params.yaml"
    seeds = str(overrides.get("train.seeds", list(params.train.seeds))).strip("[]")
    changes = "".join(f", {name}={value}" for name, value in overrides.items() if name != "train.seeds")
    return f"{params.package.name}, seeds {seeds}, {workspace.revision(ROOT)}{changes}"


@flow(
    name="reproduce",
    flow_run_name=run_name,
    task_runner=THREADS,
    persist_result=False,
    validate_parameters=True,
)
def reproduce(params: ReproduceParams = ReproduceParams()) -> State[Any]:  # noqa: B008
    """Bring every stage of dvc.yaml up to date, each as soon as its parents are and a place is free.

    The same as `dvc repro`, and with the same results: DVC is the truth. Its DAG is read from DVC; each stage
    is a task, whose state says whether DVC has Executed it, found it Unchanged or restored it (Cached).
    With overrides it runs in a copy of the workspace, and its results become an experiment (`dvc exp show`).
    """
    with workspace.claim(ROOT, f"reproduce {runtime.flow_run.name}"):
        workspace.check_workspace(ROOT)
        if params.remote != "none":
            remote.check(ROOT, params.git_remote)
        root, name = ROOT, ""
        if params.overrides:
            name = workspace.name_of(params.overrides, workspace.snapshot(ROOT))
            root = workspace.copy_workspace(ROOT, name, params.overrides)
        run = Run(params, {"": open_workspace("", root, params)})
        try:
            run.run()
        except StageEnded as ended:
            return ended_early(ended, summary(run))
        if not run.succeeded:
            return Failed(message=f"{summary(run)}\n\n{faults(run)}")
        if name:
            workspace.keep_experiment(ROOT, root, name)
            get_run_logger().info("Kept as the DVC experiment %s: dvc exp show, dvc exp apply %s", name, name)
    return Completed(message=summary(run))


def open_workspace(label: str, root: Any, params: RunParams) -> Workspace:
    """Read parameters and DAG of a workspace.

    Raises:
        Refused: if DVC cannot, or there is no such target.
    """
    try:
        return Workspace.open(label, root, params.targets)
    except ValueError as error:
        raise Refused(str(error)) from error
