"""Runs the stages of one or several workspaces as concurrent Prefect tasks."""

import concurrent.futures
import logging
import threading
from collections import Counter
from collections.abc import Sequence
from typing import Any

from prefect import get_run_logger, task
from prefect.cache_policies import NO_CACHE
from prefect.futures import PrefectConcurrentFuture
from prefect.states import Cancelled, Completed, Failed, State
from prefect.task_runners import ThreadPoolTaskRunner

from pipelines.flows import remote
from pipelines.flows.dvc_stage import GuardedRunner, StageEnded, StageFailed, Stop, environment
from pipelines.flows.form import RunParams
from pipelines.flows.graph import Stage, up_to_date
from pipelines.flows.resources import Leases, has_driver_program, visible_gpus

# One thread per stage, which only waits: for parents, which are submitted first, or for a child process.
THREADS: Any = ThreadPoolTaskRunner(max_workers=256)
IDLE = 4  # stages with nothing to compute at once; these wait for no slot, but each starts DVC
WIDTH = len("download@development")  # of the names of stages in the log


class StageFormatter(logging.Formatter):
    """Puts the name of its stage before what is logged in a task: a run's page mixes the lines of all."""

    def format(self, record: logging.LogRecord) -> str:
        """Return a record's line, or lines."""
        stage = getattr(record, "task_run_name", None)
        line = super().format(record)
        return line if stage is None else f"{stage:<{WIDTH}} {line}"


class StagesRun:
    """A run of stages of one or several workspaces, parents first.

    This is not a dataclass, because Prefect would wait for the futures in its fields.
    """

    def __init__(self, params: RunParams, stages: Sequence[Stage], stop: Stop) -> None:
        self.params = params
        self.stages = stages
        self.gpus = visible_gpus()
        self.leases = Leases(self.gpus, params.parallel)
        self.idle = threading.BoundedSemaphore(IDLE)
        self.stop = stop
        self.futures: dict[str, PrefectConcurrentFuture[Any]] = {}  # of tasks, by title
        fresh = {root: up_to_date(root) for root in {stage.root for stage in stages}}
        self.fresh = {stage.title() for stage in stages if stage.name in fresh[stage.root]}  # up to date

    def run(self) -> State[Any]:
        """Run all stages that can run; return the flow run's state, with a paragraph per failed stage."""
        for handler in logging.getLogger("prefect.task_runs").handlers:
            handler.setFormatter(StageFormatter())
        try:
            self.submit()
            self.wait()
        except BaseException:  # of Prefect, whose worker has seen that the run is cancelled
            self.stop.set()
            self.wait()
            raise
        states = self.states()
        counts = Counter(str(state.name) for state in states.values())
        summary = ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
        if self.stop.is_set():
            return Cancelled(message=summary)
        if all(state.is_completed() for state in states.values()):
            return Completed(message=summary)
        return Failed(message="\n\n".join([summary, *faults(states)]))

    def wait(self) -> None:
        """Wait for all tasks that have been submitted."""
        concurrent.futures.wait([future.wrapped_future for future in self.futures.values()])

    def states(self) -> dict[str, State[Any]]:
        """Return the last state of each task, by title."""
        return {title: future.wrapped_future.result() for title, future in self.futures.items()}

    def is_remote(self, stage: Stage) -> bool:
        """Return whether a stage goes to a remote worker."""
        if stage.is_idle:
            return False
        if self.params.remote == "gpu":
            return stage.gpus > 0
        return self.params.remote == "all" and stage.command != ""

    def submit(self) -> None:
        """Submit a Prefect task for each stage, which starts when its parents have succeeded."""
        firsts: dict[str, str] = {}
        for stage in self.stages:
            # If an earlier workspace has the same stage, this one waits, and is restored from the cache.
            first = firsts.setdefault(stage.signature, stage.title())
            configured = run_stage.with_options(
                name=stage.name,
                task_run_name=stage.title(),
                description=f"`{stage.command}`",
                retries=len(stage.retries),
                retry_delay_seconds=list(stage.retries),
            )
            needed = [*map(stage.title, stage.parents), first]
            parents = [self.futures[parent] for parent in needed if parent in self.futures]
            self.futures[stage.title()] = configured.submit(self, stage, wait_for=parents)  # type: ignore[call-overload]

    def environment(self, stage: Stage, gpus: Sequence[str]) -> dict[str, str]:
        """Return the environment of a stage with these GPUs and its share of the cores.

        Stages of one kind that can run at once share them. The number must not depend on timing, because with
        a different number of threads, results can differ in their last digits.
        """
        slots = len(self.gpus) // stage.gpus if stage.gpus and self.gpus else self.params.parallel
        to_run = {  # by signature, because rows of a sweep share stages
            other.signature
            for other in self.stages
            if other.kind == stage.kind and not (other.title() in self.fresh or self.is_remote(other))
        }
        stages = min(slots, len(to_run))
        sharing = stages * max(1, stage.gpus) if stages > 1 else 1  # a lone training divides them itself
        # A stage sees only its own GPUs: not one, either, of a driver that fails.
        return environment(gpus if self.gpus or has_driver_program() else None, sharing)


def faults(states: dict[str, State[Any]]) -> list[str]:
    """Return the messages of the stages that ended without success; those that did not begin have none."""
    failed = {
        title: state for title, state in states.items() if state.is_final() and not state.is_completed()
    }
    return [f"{title} {state.message}" for title, state in failed.items()]


@task(cache_policy=NO_CACHE, persist_result=False)
def run_stage(run: StagesRun, stage: Stage) -> State[Any]:
    """Bring one stage up to date; the state's name says how. Prefect retries it if it has Failed."""
    try:
        outcome = "Unchanged" if stage.title() in run.fresh else update_stage(run, stage)
    except StageEnded as error:  # which Prefect must not retry
        return Cancelled(name=error.state, message=str(error))
    except StageFailed as error:
        return Failed(message=str(error))
    return Completed(name=outcome, message=f"{stage.name}: {outcome.lower()}")


def update_stage(run: StagesRun, stage: Stage) -> str:
    """Bring one stage up to date once it has its GPUs or CPU slot; return the outcome."""

    def runner(gpus: Sequence[str]) -> GuardedRunner:
        env = run.environment(stage, gpus)
        return GuardedRunner(stage.root, env, stage.hours, run.stop, get_run_logger().info)

    if run.is_remote(stage):
        return run_remotely(runner([]), stage)
    # Remote workers may have pushed results that this clone's cache lacks.
    options = [] if run.params.remote == "none" else ["--pull"]
    if stage.is_idle:
        with run.idle:
            return runner([]).reproduce(stage.name, *options)
    with run.leases.lease(stage.gpus, run.stop, get_run_logger().info) as gpus:
        return runner(gpus).reproduce(stage.name, *options)


def run_remotely(runner: GuardedRunner, stage: Stage) -> str:
    """Have a remote worker run a stage, unless its outputs are in a cache; return the local outcome."""
    outcome = runner.restore(stage.name)
    if outcome is None:
        remote.run_on_worker(stage, runner)
        outcome = runner.restore(stage.name)
    if outcome is None:
        raise StageFailed("ran on a remote worker, but its outputs are not in this clone's DVC remote")
    return outcome
