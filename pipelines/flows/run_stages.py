"""Stages of one or several workspaces as Prefect tasks, side by side."""

import concurrent.futures
import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from prefect import get_run_logger, runtime, task
from prefect.cache_policies import NO_CACHE
from prefect.futures import PrefectConcurrentFuture
from prefect.states import Completed, Failed, State
from prefect.task_runners import ThreadPoolTaskRunner
from pydantic import BaseModel, ConfigDict, Field, model_validator

from convs2s.config.load import load_params
from convs2s.config.params import Params
from pipelines.flows import artifacts, dvc_stage, remote, workspace
from pipelines.flows.dvc_stage import Outcome, StageEnded
from pipelines.flows.graph import Stage, read_graph, restrict
from pipelines.flows.progress import showing_progress
from pipelines.flows.resources import Leases, choose_gpus
from pipelines.flows.watch import ended_early, make_check
from pipelines.flows.workspace import ROOT

Key = tuple[str, str]
"""Label of a workspace, name of a stage."""
PAUSE = 2.0
"""Seconds between two checks whether the run itself is to go on."""
THREADS: Any = ThreadPoolTaskRunner(max_workers=256)
"""A thread per stage; it only waits, for parents, which come before it in the queue, or a child process."""


class RunParams(BaseModel):
    """How stages are run; the form of the Prefect UI."""

    model_config = ConfigDict(extra="forbid")

    targets: list[str] = Field(
        default=[], description="stages to bring up to date, with all they need: train@1, evaluate; none: all"
    )
    force: bool = Field(default=False, description="run stages again that are up to date")
    parallel: int = Field(
        default=2, ge=1, description="stages on the CPU at once; also trainings, where there is no GPU"
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

    def is_remote(self, stage: Stage) -> bool:
        """Tell whether a stage goes to a remote worker."""
        wanted = self.remote == "all" or (self.remote == "gpu" and stage.gpus > 0)
        return wanted and stage.travels

    def seconds(self, stage: Stage) -> float:
        """Return a stage's deadline."""
        return 3600.0 * self.hours.get(stage.name, self.hours.get(stage.kind, stage.hours))


@contextlib.contextmanager
def claimed_root(params: RunParams) -> Iterator[None]:
    """Hold the workspace for the present flow run, after checking that the run may start there."""
    with workspace.claim(ROOT, f"{runtime.flow_run.flow_name} {runtime.flow_run.name}"):
        workspace.check_workspace(ROOT)
        if params.remote != "none":
            remote.check(ROOT, params.git_remote)
        yield


@dataclass(frozen=True)
class Workspace:
    """A clone with its own parameters; the label is empty for the user's own."""

    label: str
    root: Path
    params: Params
    stages: dict[str, Stage]

    @classmethod
    def open(cls, label: str, root: Path, targets: Sequence[str]) -> "Workspace":
        """Read parameters and DAG; raise a ValueError if DVC cannot, or there is no such target."""
        return cls(label, root, load_params(root / "params.yaml"), restrict(read_graph(root), targets))


@dataclass
class StagesRun:
    """A run of the stages of some workspaces, and what became of each.

    Attributes:
        for_others: whether this is a remote worker's, whose results go to the DVC remote.
    """

    params: RunParams
    workspaces: Sequence[Workspace]
    for_others: bool = False
    stop: threading.Event = field(default_factory=threading.Event)
    outcomes: dict[Key, Outcome] = field(default_factory=dict)
    faults: dict[Key, str] = field(default_factory=dict)

    def stages(self) -> dict[Key, tuple[Workspace, Stage]]:
        """Return every stage of every workspace, parents first."""
        return {
            (space.label, name): (space, s) for space in self.workspaces for name, s in space.stages.items()
        }

    def run(self) -> State[Any]:
        """Run all that can be run; return the flow run's state, with what went wrong, a paragraph a stage.

        Raises:
            ValueError: if a stage of `hours` does not exist, or one takes more GPUs than there are.
        """
        futures = self.submit(self.leases())
        waited_for, check = [future.wrapped_future for future in futures], make_check()
        early = None
        try:
            while concurrent.futures.wait(waited_for, timeout=PAUSE).not_done:
                check()
        except StageEnded as ended:
            early = ended
        finally:
            self.stop.set()
            concurrent.futures.wait(waited_for)
        if early:
            return ended_early(early, self.summary())
        if len(self.outcomes) == len(futures):
            return Completed(message=self.summary())
        faults = [f"{name} {label}".strip() + f" {text}" for (label, name), text in self.faults.items()]
        return Failed(message="\n\n".join([self.summary(), *faults]))

    def leases(self) -> Leases:
        """Return the GPUs and places to share, after checking that they and the deadlines fit the stages."""
        gpus = choose_gpus(self.params.gpus)
        stages = [stage for _, stage in self.stages().values()]
        names = {name for stage in stages for name in (stage.name, stage.kind)}
        if unknown := set(self.params.hours) - names:
            raise ValueError(
                f"hours: found {', '.join(sorted(unknown))}, which is no stage. Wanted some of: "
                f"{', '.join(sorted(names))}."
            )
        for stage in stages:
            if gpus and stage.gpus > len(gpus) and not self.params.is_remote(stage):
                raise ValueError(
                    f"{stage.name} takes {stage.gpus} GPUs, but there are {len(gpus)}: it could never start. "
                    "Lower train.workers in params.yaml, or name more ids in gpus."
                )
        return Leases(gpus, self.params.parallel)

    def submit(self, leases: Leases) -> list[PrefectConcurrentFuture[Any]]:
        """Submit a Prefect task for each stage, which begins when its parents have succeeded.

        A stage that an earlier workspace computes, too, waits for that one and is restored from the cache.
        """
        futures: dict[Key, PrefectConcurrentFuture[Any]] = {}
        firsts: dict[str, Key] = {}
        for key, (space, stage) in self.stages().items():
            first = firsts.setdefault(stage.signature, key)
            needed = [(space.label, parent) for parent in stage.parents] + ([first] if first != key else [])
            configured = run_stage.with_options(
                name=stage.name,
                task_run_name=f"{stage.name} {space.label}".strip(),
                description=f"`{stage.command}`",
                tags=[stage.kind, space.params.package.name],
                retries=0 if self.for_others else len(stage.retries),
            )
            parents = [futures[parent] for parent in needed if parent in futures]
            force = self.params.force and first == key
            futures[key] = configured.submit(self, space, stage, leases, force, wait_for=parents)  # type: ignore[call-overload]
        return list(futures.values())

    def summary(self) -> str:
        """Return a line on all stages."""
        found = list(self.outcomes.values())
        counts = [f"{found.count(outcome)} {outcome.value.lower()}" for outcome in Outcome]
        left = len(self.stages()) - len(self.outcomes) - len(self.faults)
        return ", ".join([*counts, f"{len(self.faults)} failed", f"{left} not run"])


def never_after_cancellation(_task: Any, _run: Any, state: State[Any]) -> bool:
    """Retry what failed by itself, not what the flow has ended."""
    return not isinstance(state.result(raise_on_failure=False), StageEnded)


@task(cache_policy=NO_CACHE, persist_result=False, retry_condition_fn=never_after_cancellation)
def run_stage(run: StagesRun, space: Workspace, stage: Stage, leases: Leases, force: bool) -> State[Any]:
    """Bring one stage up to date; the state's name says what that took."""
    key, attempt = (space.label, stage.name), runtime.task_run.run_count
    if attempt > 1 and run.stop.wait(stage.retries[attempt - 2]):  # Prefect's own wait hears no cancellation
        raise StageEnded("was not tried again, for the flow run is cancelled or has ended")
    elsewhere = run.params.is_remote(stage)
    with leases.lease(None if elsewhere else stage.gpus, run.stop) as gpus:
        env = dvc_stage.environment(gpus if leases.has_gpus else None)  # a CPU stage sees no GPU
        try:
            outcome = bring_up_to_date(run, space, stage, env, force)
        except Exception as fault:  # a full disk, a git that fails: whatever it is, the run must report it
            known = isinstance(fault, dvc_stage.StageFailed | StageEnded)
            run.faults[key] = str(fault) if known else f"failed, {type(fault).__name__}: {fault}"
            show(artifacts.show_failure, stage, space)
            raise
    show(artifacts.show, stage, space)
    run.faults.pop(key, None)
    run.outcomes[key] = outcome
    return Completed(name=outcome.value, message=f"{stage.name}: {outcome.value.lower()}")


def bring_up_to_date(
    run: StagesRun, space: Workspace, stage: Stage, env: Mapping[str, str], force: bool
) -> Outcome:
    """Run a stage through DVC, here or elsewhere; return what that took."""
    elsewhere, seconds, on_line = (
        run.params.is_remote(stage),
        run.params.seconds(stage),
        get_run_logger().info,
    )
    if elsewhere:
        remote.execute(stage, space.root, run.params.git_remote, seconds, run.stop)
    options = ["--pull"] * (elsewhere or run.for_others) + ["--force"] * force
    with showing_progress(artifacts.key("progress", space.label, stage.name), space.root, stage.work):
        outcome = dvc_stage.reproduce(stage.name, space.root, env, seconds, run.stop, on_line, options)
    if run.for_others:
        remote.push(space.root, run.stop, stage.name)
    return outcome


def show(action: Callable[[Stage, Path, str], None], stage: Stage, space: Workspace) -> None:
    """Show something in the UI; a server that is away costs the picture, not the stage."""
    try:
        action(stage, space.root, space.label)
    except Exception as error:  # whatever it is, the stage's result is safe in DVC
        get_run_logger().warning("Not shown in the UI: %s: %s", type(error).__name__, error)
