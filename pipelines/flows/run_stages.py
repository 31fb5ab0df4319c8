"""Runs the stages of one or several workspaces as concurrent Prefect tasks."""

import concurrent.futures
import contextlib
import os
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import psutil
from filelock import FileLock, Timeout
from prefect import get_client, get_run_logger, runtime, task
from prefect.cache_policies import NO_CACHE
from prefect.futures import PrefectConcurrentFuture
from prefect.settings import PREFECT_API_REQUEST_TIMEOUT, PREFECT_CLIENT_MAX_RETRIES, temporary_settings
from prefect.states import Cancelled, Completed, Crashed, Failed, Running, State
from prefect.task_runners import ThreadPoolTaskRunner

from pipelines.flows import artifacts, remote
from pipelines.flows.dvc_stage import GuardedRunner, StageEnded, StageFailed, Stop, environment
from pipelines.flows.form import RunParams
from pipelines.flows.graph import Stage, check_names, up_to_date
from pipelines.flows.resources import Leases, choose_gpus
from pipelines.flows.workspace import ROOT
from pipelines.repair import repair

PAUSE = 2.0  # seconds between checks whether the run should continue
# One thread per stage, which only waits: for parents, which are submitted first, or for a child process.
THREADS: Any = ThreadPoolTaskRunner(max_workers=256)


@contextlib.contextmanager
def claim(root: Path) -> Iterator[None]:
    """Lock a workspace for one flow run, and set damaged files of DVC aside.

    Raises a ValueError if it is taken, or the worker was started in another clone than this code's.
    """
    if "PREFECT__FLOW_RUN_ID" in os.environ and (place := Path(psutil.Process(os.getppid()).cwd())) != ROOT:
        raise ValueError(
            f"the worker of this run was started in {place}, but its Python environment has the code of "
            f"{ROOT}. Start it with: python -m pipelines.flows.machine worker POOL"
        )
    try:
        with FileLock(root / ".dvc" / "tmp" / "flow.lock", timeout=0):
            for sentence in repair(root):
                get_run_logger().warning(sentence)
            artifacts.tidy_log()
            yield
    except Timeout:
        raise ValueError(f"another flow run works in {root}. Wait for it to end, or cancel it.") from None


class StagesRun:
    """A run of stages of one or several workspaces, parents first.

    This is not a dataclass, because Prefect would wait for the futures in its fields.
    """

    def __init__(
        self, params: RunParams, stages: Sequence[Stage], tags: Sequence[str] = (), for_others: bool = False
    ) -> None:
        self.params, self.stages, self.tags = params, stages, tags  # tags of this run and its tasks
        self.for_others = for_others  # True on a remote worker, which pushes results to the DVC remote
        self.gpus = self.checked_gpus()
        self.leases, self.stop = Leases(self.gpus, params.parallel), Stop()
        self.futures: dict[str, PrefectConcurrentFuture[Any]] = {}  # of tasks, by title
        self.seconds: dict[str, float] = {}  # run time by title, excluding the wait for GPUs or a CPU slot
        self.fresh: set[str] = set()  # titles of the tasks that are up to date
        if not (params.force or for_others):
            fresh = {root: up_to_date(root) for root in {stage.root for stage in stages}}
            self.fresh = {stage.title() for stage in stages if stage.name in fresh[stage.root]}

    def run(self) -> State[Any]:
        """Run all stages that can run; return the flow run's state, with a paragraph per failed stage."""
        artifacts.tag_run(self.tags)
        self.submit()
        waited_for, check = [future.wrapped_future for future in self.futures.values()], make_check()
        early: State[Any] | None = None
        try:
            while not early and concurrent.futures.wait(waited_for, timeout=PAUSE).not_done:
                early = check()
        finally:
            self.stop.set()
            concurrent.futures.wait(waited_for)
        if early:
            early.message = f"{early.message}. {self.summary()}. A new run continues from there."
            return early
        states = self.states()
        if all(state.is_completed() for state in states.values()):
            return Completed(message=self.summary())
        faults = [f"{title} {state.message}" for title, state in states.items() if went_wrong(state)]
        return Failed(message="\n\n".join([self.summary(), *faults]))

    def checked_gpus(self) -> list[int]:
        """Return the GPUs to lease; raise a ValueError if they, or the deadlines, do not fit the stages."""
        gpus = choose_gpus(self.params.gpus)
        check_names("hours", self.params.hours, self.stages)
        for stage in self.stages:
            on_gpus = gpus or self.for_others  # a local run without GPUs trains on the CPU
            if on_gpus and stage.gpus > len(gpus) and not self.params.is_remote(stage):
                raise ValueError(
                    f"{stage.name}: expected {stage.gpus} GPUs, found {len(gpus)} on {socket.gethostname()}. "
                    "Lower train.workers in params.yaml, list more ids in gpus, or use another worker."
                )
        return gpus

    def submit(self) -> None:
        """Submit a Prefect task for each stage, which starts when its parents have succeeded."""
        firsts: dict[str, str] = {}
        for stage in self.stages:
            title = stage.title()
            # If an earlier workspace has the same stage, this one waits, and is restored from the cache.
            first = firsts.setdefault(stage.signature, title)
            configured = run_stage.with_options(
                name=stage.name,
                task_run_name=title,
                description=f"`{stage.command}`",
                retries=0 if self.for_others else len(stage.retries),
                retry_delay_seconds=list(stage.retries),
            )
            needed = [*map(stage.title, stage.parents), first]
            parents = [self.futures[parent] for parent in needed if parent in self.futures]
            force = self.params.force and first == title
            self.futures[title] = configured.submit(self, stage, force, wait_for=parents)  # type: ignore[call-overload]

    def states(self) -> dict[str, State[Any]]:
        """Return the last state of each task, by title."""
        return {title: future.wrapped_future.result() for title, future in self.futures.items()}

    def environment(self, stage: Stage, gpus: Sequence[int]) -> dict[str, str]:
        """Return the environment of a stage with these GPUs and its share of the cores.

        Stages of one kind that can run at once share them. The number must not depend on timing, because with
        a different number of threads, results can differ in their last digits.
        """
        slots = len(self.gpus) // stage.gpus if stage.gpus and self.gpus else self.params.parallel
        to_run = {  # by signature, because rows of a sweep share stages
            other.signature
            for other in self.stages
            if other.kind == stage.kind and not (other.title() in self.fresh or self.params.is_remote(other))
        }
        stages = min(slots, len(to_run))
        sharing = stages * max(1, stage.gpus) if stages > 1 else 1  # a lone training divides them itself
        return environment(gpus if self.gpus else None, sharing)  # a stage sees only its own GPUs

    def show_summary(self, state: State[Any], scores: str = "") -> State[Any]:
        """Log the scores, show a summary of the run with its last state, and return that."""
        if scores:
            get_run_logger().info("\n%s", scores)
        times = {title: timedelta(seconds=round(seconds)) for title, seconds in self.seconds.items()}
        lines = [
            f"{len(self.stages)} stages on {socket.gethostname()}, GPUs {self.gpus or 'none'}.\n",
            f"**{state.name}**: {state.message}\n",
            f"## Scores\n\n```text\n{scores}\n```\n" if scores else "",
            *("## Stages\n", "| stage | state | time |", "|---|---|---|"),
            *(f"| {title} | {last.name} | {times.get(title, '')} |" for title, last in self.states().items()),
        ]
        artifacts.show_summary(lines)
        return state

    def summary(self) -> str:
        """Return one line that counts the stages by how they ended."""
        counts = {"executed": 0, "unchanged": 0, "cached": 0, "failed": 0, "cancelled": 0, "not run": 0}
        for state in self.states().values():
            named = str(state.name).lower()
            counts[named if named in counts else "failed" if state.is_final() else "not run"] += 1
        return ", ".join(f"{count} {kind}" for kind, count in counts.items() if count or kind != "cancelled")


def make_check() -> Callable[[], State[Any] | None]:
    """Return a function that returns None while this flow run should continue, and then its final state.

    That is Crashed if the worker that started the run was killed, because no other worker takes it over, and
    Cancelled if the run was cancelled or ended on the server. If the server has marked it Crashed only
    because it was down itself and missed the heartbeats, the run is set to Running again.
    """
    parent, run = os.getppid(), runtime.flow_run.id

    def check() -> State[Any] | None:
        if "PREFECT__FLOW_RUN_ID" in os.environ and os.getppid() != parent:
            return Crashed(message="the worker that had started this run is gone: its stages were ended")
        # An unreachable server must not delay the next check of the worker: try once, with a short timeout.
        impatient = {PREFECT_CLIENT_MAX_RETRIES: 0, PREFECT_API_REQUEST_TIMEOUT: 5.0}
        try:
            with temporary_settings(impatient), get_client(sync_client=True) as client:
                state = client.read_flow_run(run).state
                if state and state.is_crashed():
                    client.set_flow_run_state(run, Running(), force=True)
                elif state and (state.is_cancelling() or state.is_final()):
                    return Cancelled(message=f"on the server, the run is {state.name}: its stages were ended")
        except (httpx.HTTPError, RuntimeError):
            pass  # the stages continue
        return None

    return check


def went_wrong(state: State[Any]) -> bool:
    """Return whether a stage itself has an error to report."""
    return state.is_final() and not state.is_completed()


@task(cache_policy=NO_CACHE, persist_result=False)
def run_stage(run: StagesRun, stage: Stage, force: bool) -> State[Any]:
    """Bring one stage up to date; the state's name gives the outcome. Prefect retries it if it has Failed."""
    artifacts.tag_task([*run.tags, stage.kind])
    try:
        outcome = "Unchanged" if stage.title() in run.fresh else execute(run, stage, force)
    except Exception as fault:  # a full disk, a failing git, ...: the run must report whatever it is
        artifacts.show(stage, failed=True)
        if isinstance(fault, StageEnded):  # which Prefect must not retry
            return Cancelled(name=fault.state, message=str(fault))
        known = isinstance(fault, StageFailed)
        return Failed(message=str(fault) if known else f"failed, {type(fault).__name__}: {fault}")
    artifacts.show(stage)
    return Completed(name=outcome, message=f"{stage.name}: {outcome.lower()}")


def execute(run: StagesRun, stage: Stage, force: bool) -> str:
    """Bring one stage up to date once it has its GPUs or CPU slot; return the outcome."""
    is_remote = run.params.is_remote(stage)
    with contextlib.ExitStack() as stack:
        gpus = [] if is_remote else stack.enter_context(run.leases.lease(stage.gpus, run.stop))
        env, seconds = run.environment(stage, gpus), run.params.seconds(stage)
        runner = GuardedRunner(stage.root, env, seconds, run.stop, get_run_logger().info)
        if stage.work:
            stack.enter_context(artifacts.show_progress(stage))
        start = time.monotonic()
        outcome = run_remotely(run, runner, stage) if is_remote else run_locally(run, runner, stage, force)
        run.seconds[stage.title()] = time.monotonic() - start
        return outcome


def run_locally(run: StagesRun, runner: GuardedRunner, stage: Stage, force: bool) -> str:
    """Run a stage through DVC; return the outcome. A remote worker fetches inputs and pushes the outputs."""
    pull = run.for_others or run.params.remote != "none"
    if run.for_others and stage.parents:  # `dvc repro --pull` would keep outputs of an earlier run
        runner.run(*remote.DVC, "--wait-for-lock", "pull", "--force", *sorted(stage.parents))
    outcome = runner.reproduce(stage.name, *["--pull"] * pull, *["--force"] * force)
    if run.for_others:
        remote.push(runner, stage.name)
    return outcome


def run_remotely(run: StagesRun, runner: GuardedRunner, stage: Stage) -> str:
    """Have a remote worker run a stage, unless its outputs are in a cache; return the local outcome."""
    outcome = runner.restore(stage.name)
    if outcome is None:
        remote.execute(stage, runner, run.params.git_remote)
        outcome = runner.restore(stage.name)
    if outcome is None:
        raise StageFailed("ran on a remote worker, but its outputs are not in this clone's DVC remote")
    return outcome
