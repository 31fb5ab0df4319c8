"""Stages of one or several workspaces as Prefect tasks, side by side."""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from prefect import get_run_logger, runtime, task
from prefect.cache_policies import NO_CACHE
from prefect.futures import PrefectFuture
from prefect.states import Completed, State
from pydantic import BaseModel, ConfigDict, Field, model_validator

from convs2s.config.load import load_params
from convs2s.config.params import Params
from pipelines.flows import artifacts, dvc_stage, remote
from pipelines.flows.dvc_stage import Outcome, StageEnded
from pipelines.flows.graph import Stage, read_graph, restrict
from pipelines.flows.progress import Progress
from pipelines.flows.resources import Resources, choose_gpus
from pipelines.flows.scheduler import Job, Schedule
from pipelines.flows.watch import watching
from pipelines.flows.workspace import Refused

Key = tuple[str, str]
"""Label of a workspace, name of a stage."""


class RunParams(BaseModel):
    """How stages are run; the form of the Prefect UI."""

    model_config = ConfigDict(extra="forbid")

    targets: list[str] = Field(
        default=[], description="stages to bring up to date, with all they need: train@1, evaluate; none: all"
    )
    force: bool = Field(default=False, description="run stages again that are up to date")
    parallel: int = Field(
        default=2,
        ge=1,
        description="stages on the CPU at once; also trainings, where there is no GPU",
    )
    gpus: list[int] | None = Field(default=None, description="ids of GPUs to use; None: all there are")
    hours: dict[str, Annotated[float, Field(gt=0, allow_inf_nan=False)]] = Field(
        default={}, description='deadlines other than those of dvc.yaml: {"train": 48, "align": 2}'
    )
    remote: Literal["none", "gpu", "all"] = Field(
        default="none", description="which stages go to remote workers: those that take GPUs, or all"
    )
    git_remote: str = Field(default="origin", description="git remote that remote workers share")

    @model_validator(mode="after")
    def _force_is_local(self) -> Self:
        if self.force and self.remote != "none":
            raise ValueError(
                "force and remote: stages run elsewhere come back through DVC's cache of runs, which would "
                "give the old results; wanted force only with remote none"
            )
        return self


@dataclass(frozen=True)
class Workspace:
    """A clone with its own parameters; the label is empty for the user's own."""

    label: str
    root: Path
    params: Params
    stages: dict[str, Stage]

    @classmethod
    def open(cls, label: str, root: Path, targets: Sequence[str]) -> "Workspace":
        """Read parameters and DAG."""
        return cls(label, root, load_params(root / "params.yaml"), restrict(read_graph(root), targets))


@dataclass
class Run:
    """A run of stages, and what became of each."""

    params: RunParams
    workspaces: Mapping[str, Workspace]
    gpus: list[int] = field(default_factory=list)
    stop: threading.Event = field(default_factory=threading.Event)
    followers: set[Key] = field(default_factory=set)
    outcomes: dict[Key, Outcome] = field(default_factory=dict)
    faults: dict[Key, str] = field(default_factory=dict)

    def jobs(self) -> dict[Key, Job[Key]]:
        """Return a job for every stage of every workspace.

        A stage that another workspace computes, too, follows that one and is restored from the cache.
        """
        jobs: dict[Key, Job[Key]] = {}
        self.followers.clear()
        leaders: dict[str, Key] = {}
        for label, workspace in self.workspaces.items():
            for name, stage in workspace.stages.items():
                leader = leaders.setdefault(stage.signature, (label, name))
                parents = {(label, parent) for parent in stage.parents} | ({leader} - {(label, name)})
                if leader != (label, name):
                    self.followers.add((label, name))
                jobs[label, name] = Job((label, name), parents, stage.gpus, self.is_remote(stage))
        return jobs

    @property
    def succeeded(self) -> bool:
        """Whether every stage has ended well."""
        return all(
            (label, name) in self.outcomes
            for label, space in self.workspaces.items()
            for name in space.stages
        )

    def is_remote(self, stage: Stage) -> bool:
        """Tell whether a stage goes to a remote worker."""
        wanted = self.params.remote == "all" or (self.params.remote == "gpu" and stage.gpus > 0)
        return wanted and stage.travels

    def run(self) -> None:
        """Run all; `outcomes` and `faults` tell of it then.

        Raises:
            Refused: if a deadline is for a stage that does not exist.
            StageEnded: if the flow run was cancelled.
        """
        jobs = self.jobs()
        names = {
            n for space in self.workspaces.values() for s in space.stages.values() for n in (s.name, s.kind)
        }
        if unknown := set(self.params.hours) - names:
            raise Refused(
                f"hours: found {', '.join(sorted(unknown))}, which is no stage. Wanted some of: "
                f"{', '.join(sorted(names))}."
            )
        self.gpus = choose_gpus(self.params.gpus)
        schedule = Schedule(jobs, Resources(self.gpus, self.params.parallel))
        futures: dict[Key, PrefectFuture[Any]] = {}

        def start(key: Key, gpus: Sequence[int]) -> None:
            before = [futures[parent] for parent in jobs[key].parents]
            futures[key] = self.submit(key, gpus, before)
            futures[key].add_done_callback(lambda _: schedule.end(key, key in self.outcomes))

        with watching() as look:
            try:
                schedule.run(start, look)
            finally:
                self.stop.set()
                for future in futures.values():
                    future.wait()

    def submit(self, key: Key, gpus: Sequence[int], before: list[PrefectFuture[Any]]) -> PrefectFuture[Any]:
        """Start the Prefect task of a stage; its run has the name that DVC gives the stage."""
        label, name = key
        workspace = self.workspaces[label]
        stage = workspace.stages[name]
        title = f"{name} {label}".strip()
        where = f"GPU {', '.join(map(str, gpus))}" if gpus else "CPU"
        configured = run_stage.with_options(
            name=name,
            task_run_name=title,
            description=f"`{stage.command}` on {'a remote worker' if self.is_remote(stage) else where}",
            tags=[stage.kind, workspace.params.package.name],
            retries=len(stage.retries),
        )
        future: PrefectFuture[Any] = configured.submit(  # type: ignore[call-overload]
            self, workspace, stage, gpus, wait_for=before
        )
        return future

    def seconds(self, stage: Stage) -> float:
        """Return a stage's deadline."""
        hours = self.params.hours
        return 3600.0 * hours.get(stage.name, hours.get(stage.kind, stage.hours))


def never_after_cancellation(_task: Any, _run: Any, state: State[Any]) -> bool:
    """Retry what failed by itself, not what the flow has ended."""
    fault = state.result(raise_on_failure=False)
    return not isinstance(fault, StageEnded)


@task(cache_policy=NO_CACHE, persist_result=False, retry_condition_fn=never_after_cancellation)
def run_stage(run: Run, workspace: Workspace, stage: Stage, gpus: Sequence[int]) -> State[Any]:
    """Bring one stage up to date; the state's name says what that took."""
    logger = get_run_logger()
    key = (workspace.label, stage.name)
    progress = Progress(
        artifacts.key("progress", workspace.label, stage.name), workspace.params.train.max_epochs
    )
    attempt = runtime.task_run.run_count
    if attempt > 1 and run.stop.wait(stage.retries[attempt - 2]):  # Prefect's own wait hears no cancellation
        raise StageEnded("was not tried again, for the flow run is cancelled or has ended")

    def hear(line: str, passing: bool) -> None:
        if passing:
            progress.hear(line)
        else:
            logger.info(line)

    env = dvc_stage.environment(gpus if run.gpus else None)  # a stage of the CPU sees none of the GPUs
    pull = run.is_remote(stage)
    try:
        if pull:
            remote.execute(stage, workspace.root, run.params.git_remote, run.seconds(stage), run.stop)
        with progress:
            outcome = dvc_stage.reproduce(
                stage.name,
                workspace.root,
                env,
                run.seconds(stage),
                run.stop,
                hear,
                force=run.params.force and key not in run.followers,
                pull=pull,
            )
    except Exception as fault:  # a full disk, a git that fails: whatever it is, the run must tell of it
        known = isinstance(fault, dvc_stage.StageFailed | StageEnded)
        run.faults[key] = str(fault) if known else f"failed, {type(fault).__name__}: {fault}"
        showing(lambda: artifacts.show_failure(stage, workspace.root, workspace.label))
        raise
    showing(lambda: artifacts.show(stage, workspace.root, workspace.label))
    run.faults.pop(key, None)
    run.outcomes[key] = outcome
    return Completed(name=outcome.value, message=f"{stage.name}: {outcome.value.lower()}")


def showing(action: Callable[[], None]) -> None:
    """Show something in the UI; a server that is away costs the picture, not the stage."""
    try:
        action()
    except Exception as error:  # whatever it is, the stage's result is safe in DVC
        get_run_logger().warning("Not shown in the UI: %s: %s", type(error).__name__, error)


def summary(run: Run) -> str:
    """Return a line on all stages of a run."""
    found = [outcome.value.lower() for outcome in run.outcomes.values()]
    counts = [f"{found.count(word)} {word}" for word in dict.fromkeys(o.value.lower() for o in Outcome)]
    every = {(label, name) for label, workspace in run.workspaces.items() for name in workspace.stages}
    left = len(every) - len(run.outcomes) - len(run.faults)
    return ", ".join([*counts, f"{len(run.faults)} failed", f"{left} not run"])


def faults(run: Run) -> str:
    """Return what went wrong, a paragraph a stage."""
    return "\n\n".join(f"{name} {label}".strip() + f" {text}" for (label, name), text in run.faults.items())
