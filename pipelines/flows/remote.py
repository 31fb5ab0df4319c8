"""Stages on other machines, which share only a git remote and a DVC remote with the orchestrator.

The orchestrator commits its files, including dvc.lock, to a branch `run/...` of the git remote `origin` and
pushes the stage's inputs to the DVC remote. A worker checks out that commit in its own clone, runs the stage,
and pushes the outputs together with DVC's run cache. The orchestrator's `dvc repro --pull` then finds that
the stage has already run, and fetches its outputs.
"""

import contextlib
import time
from pathlib import Path
from uuid import UUID

import httpx
from dvc.config import Config
from dvc.lock import make_lock
from prefect import flow, get_run_logger, runtime
from prefect.client.schemas.objects import FlowRun, WorkQueueStatus
from prefect.deployments import run_deployment
from prefect.states import Cancelled, Cancelling, Completed, State

from pipelines.flows import cancellation, workspace
from pipelines.flows.cancellation import stop_if_cancelled
from pipelines.flows.dvc_stage import DVC, GuardedRunner, StageEnded, StageFailed, Stop, environment
from pipelines.flows.experiment import claim
from pipelines.flows.graph import Stage, read_graph
from pipelines.flows.workspace import LINKED, ROOT, git
from pipelines.repair import LOCK, write_local_config

POLL = 2.0  # seconds between queries of a remote run's state
CORRECTED = cancellation.POLL + cancellation.TIMEOUT  # seconds in which a run that is alive says so


def publish(stage: Stage, runner: GuardedRunner) -> str:
    """Push everything that a worker needs for a stage to a branch; return its name."""
    if stage.parents:
        push(runner, *sorted(stage.parents))
    with make_lock(str(runner.root / LOCK), wait=True):  # while nobody writes dvc.lock
        tree = workspace.snapshot(runner.root)
    message = f"Inputs of {stage.name}"
    commit = git(runner.root, "commit-tree", tree, "-p", "HEAD", "-m", message, env=workspace.IDENTITY)
    branch = f"run/{runtime.flow_run.id}/{stage.name}-{commit[:12]}"  # rows of a sweep share names of stages
    git(ROOT, "push", "--quiet", "--force", "origin", f"{commit}:refs/heads/{branch}")
    return branch


def push(runner: GuardedRunner, *stages: str) -> None:
    """Push the outputs of stages and the run cache to the DVC remote."""
    runner.run(*DVC, "--wait-for-lock", "push", "--run-cache", *stages)


def run_on_worker(stage: Stage, runner: GuardedRunner) -> None:
    """Have a remote worker run a stage, and wait for it to finish; Prefect calls it Late while no worker can.

    If the worker or its machine dies, another one gets the stage, as often as needed: that is no retry. If
    the runner is stopped, the remote run is cancelled.
    """
    branch = publish(stage, runner)
    try:
        while True:
            queue = choose_queue(stage, runner.stop)
            run = run_deployment(
                "run-stage/run-stage",
                parameters={"stage": stage.name, "branch": branch},
                flow_run_name=f"{stage.name} for {runtime.flow_run.name}",
                work_queue_name=queue,
                timeout=0,
            )
            assert isinstance(run, FlowRun)
            get_run_logger().info("waits for a worker of the queue %s", queue)
            run = wait(run.id, runner.stop)
            assert run.state is not None
            # A run that crashes before it begins would crash again: somebody must look.
            worker_has_died = run.state.is_crashed() and run.start_time is not None
            if not worker_has_died:
                break
            get_run_logger().warning("its worker has died: %s", run.state.message)
    finally:
        git(ROOT, "push", "--quiet", "origin", "--delete", branch)
    if run.state.is_cancelled():
        raise StageEnded(f"was cancelled on its remote worker: {run.state.message}")
    if not run.state.is_completed():
        raise StageFailed(f"ended as {run.state.name} on a remote worker: {run.state.message}")


def choose_queue(stage: Stage, stop: Stop) -> str:
    """Return the work queue for a stage: that of its GPUs if workers with GPUs serve, else that of CPUs.

    Wait until any worker serves.
    """
    if not stage.gpus:
        return "gpus-0"
    is_said = False
    with cancellation.client_without_retries() as client:
        while not stop.is_set():
            with contextlib.suppress(httpx.HTTPError, RuntimeError):  # the server may be away for a while
                queues = client.read_work_queues(work_pool_name="remote")
                served = {queue.name for queue in queues if queue.status == WorkQueueStatus.READY}
                if served - {"gpus-0"}:
                    return f"gpus-{stage.gpus}"
                if "gpus-0" in served:
                    get_run_logger().info("no running worker has GPUs, so a CPU will do")
                    return "gpus-0"
                if not is_said:
                    get_run_logger().info("waits for any worker of the pool `remote`; none is running")
                    is_said = True
            time.sleep(POLL)
    raise StageEnded("was not started, because the flow run was cancelled")


def wait(run_id: UUID, stop: Stop) -> FlowRun:
    """Wait for a flow run to finish, and return it; cancel it if `stop` is set."""
    crashed = 0  # times that it has been seen so
    with cancellation.client_without_retries() as client:
        while True:
            with contextlib.suppress(httpx.HTTPError, RuntimeError):  # the server may be away for a while
                run = client.read_flow_run(run_id)
                crashed = crashed + 1 if run.state and run.state.is_crashed() else 0
                # A run whose server was away is shown as Crashed until it says that it is alive.
                if run.state and run.state.is_final() and (not crashed or crashed * POLL > CORRECTED):
                    return run
                if stop.is_set():
                    client.set_flow_run_state(run_id, Cancelling())
                    break
            time.sleep(POLL)
    raise StageEnded("was cancelled on its remote worker, because the flow run was")


@flow(name="run-stage", flow_run_name="{stage}", persist_result=False)
def run_stage(stage: str, branch: str) -> State[None]:
    """Run one stage in this worker's clone, on the files that the orchestrator has pushed to a branch."""
    with claim(ROOT), stop_if_cancelled() as stop:
        check_out(ROOT, branch)
        settings = read_graph(ROOT)[stage]
        runner = GuardedRunner(ROOT, environment(None), settings.hours, stop, get_run_logger().info)
        try:
            if settings.parents:  # `dvc repro --pull` would keep outputs of an earlier run
                runner.run(*DVC, "--wait-for-lock", "pull", "--force", *sorted(settings.parents))
            runner.reproduce(stage, "--pull")
            push(runner, stage)
        except StageEnded as error:
            if not stop.is_set():  # its deadline has passed
                raise
            return Cancelled(message=str(error))
    return Cancelled() if stop.is_set() else Completed()


def check_out(root: Path, branch: str) -> None:
    """Check out a branch of the git remote; raise a ValueError if files have been edited here."""
    edited = git(root, "diff", "--name-only", "HEAD", "--", ":/", ":(exclude)dvc.lock").splitlines()
    if edited:
        raise ValueError(
            f"{root} has edited files: {', '.join(edited)}. A remote worker needs its own clone."
        )
    git(root, "fetch", "--quiet", "origin", f"refs/heads/{branch}")
    git(root, "checkout", "--quiet", "--force", "--detach", "FETCH_HEAD")
    if "type" not in Config(str(root / ".dvc")).get("cache", {}):
        write_local_config(root, {"cache": {"type": LINKED}})
