"""Stages on other machines, which share only a git remote and a DVC remote with the orchestrator.

The orchestrator commits its files, including dvc.lock, to a branch `run/...` of the git remote and pushes the
stage's inputs to the DVC remote. A worker checks out that commit in its own clone, runs the stage, and pushes
the outputs together with DVC's run cache. The orchestrator's `dvc repro --pull` then finds that the stage has
already run, and fetches its outputs.
"""

import contextlib
import time
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import httpx
from prefect import get_client, get_run_logger, runtime
from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.objects import FlowRun
from prefect.deployments import run_deployment
from prefect.states import Cancelled, Cancelling, State

from pipelines.flows import workspace
from pipelines.flows.dvc_stage import DVC, GuardedRunner, StageEnded, StageFailed, Stop
from pipelines.flows.graph import Stage
from pipelines.flows.resources import queue
from pipelines.flows.workspace import ROOT, git
from pipelines.repair import commands_lock

POLL = 2.0  # seconds between queries of a remote run's state
RECENT = 20.0  # seconds since its last query after which a worker counts as offline
SURVIVAL = 10.0  # seconds in which a live run that the server has marked Crashed corrects its state


def publish(stage: Stage, runner: GuardedRunner, git_remote: str) -> tuple[str, str]:
    """Push everything that a worker needs for a stage; return branch and commit."""
    if stage.parents:
        push(runner, *sorted(stage.parents))
    with commands_lock(runner.root, wait=True):  # while nobody writes dvc.lock
        tree = workspace.snapshot(runner.root)
    message = f"Inputs of {stage.name}"
    commit = git(runner.root, "commit-tree", tree, "-p", "HEAD", "-m", message, env=workspace.IDENTITY)
    run_id = runtime.flow_run.root_flow_run_id or runtime.flow_run.id
    branch = f"run/{run_id}/{stage.name}-{commit[:12]}"  # rows of a sweep have stages of the same name
    git(ROOT, "push", "--quiet", "--force", git_remote, f"{commit}:refs/heads/{branch}")
    return branch, commit


def push(runner: GuardedRunner, *stages: str) -> None:
    """Push the outputs of stages and the run cache to the DVC remote, under the process guard."""
    runner.run(*DVC, "--wait-for-lock", "push", "--run-cache", *stages)


def fetch(runner: GuardedRunner, *stages: str) -> None:
    """Fetch the outputs of stages; `dvc repro --pull` would keep those of an earlier run."""
    if stages:
        runner.run(*DVC, "--wait-for-lock", "pull", "--force", *sorted(stages))


def execute(stage: Stage, runner: GuardedRunner, git_remote: str, patience: float) -> None:
    """Have a remote worker run a stage, and wait for it to finish.

    Raises StageFailed if the remote run fails, or if no suitable worker has been online for `patience`
    seconds; StageEnded if the runner is stopped, which cancels the remote run, or if somebody cancels that.
    """
    branch, commit = publish(stage, runner, git_remote)
    order = {"stage": stage.name, "branch": branch, "commit": commit, "git_remote": git_remote}
    try:
        remote = run_deployment(
            "run-stage/run-stage",
            parameters={**order, "seconds": runner.seconds},
            flow_run_name=f"{stage.name} for {runtime.flow_run.name}",
            tags=[stage.kind, "remote"],
            work_queue_name=queue(stage.gpus),
            timeout=0,
        )
        assert isinstance(remote, FlowRun)
        get_run_logger().info("A remote worker is to run %s: flow run %s", stage.name, remote.name)
        state = wait(remote.id, runner.stop, queue(stage.gpus), patience)
    finally:
        git(ROOT, "push", "--quiet", git_remote, "--delete", branch)
    if state.is_cancelled():
        raise StageEnded(f"was cancelled on its remote worker: {state.message}")
    if not state.is_completed():
        raise StageFailed(f"ended as {state.name} on a remote worker: {state.message}")


def wait(run: UUID, stop: Stop, work_queue: str, patience: float) -> State[Any]:
    """Wait for a flow run to finish; cancel it if `stop` is set, or if no worker is online for too long.

    Prefect's own wait_for_flow_run returns at Crashed, and could not be interrupted by `stop`.
    """
    logged, doubted, online = "", False, time.monotonic()
    with get_client(sync_client=True) as client:
        while True:
            with contextlib.suppress(httpx.HTTPError):  # the server may be unreachable for a while
                state = client.read_flow_run(run).state
                assert state is not None
                doubted = state.is_crashed() and not doubted
                if state.is_final() and not doubted:
                    return state
                if not doubted and state.name != logged:
                    logged = str(state.name)
                    get_run_logger().info("The remote run is %s", logged)
                if not (state.is_scheduled() or state.is_pending()) or is_served(client, work_queue):
                    online = time.monotonic()
                if time.monotonic() > online + patience:
                    client.set_flow_run_state(run, Cancelled(message="no worker is online"), force=True)
                    raise StageFailed(
                        f"was not started: expected a remote worker that polls the work queue {work_queue}, "
                        f"found none in {patience / 60:g} minutes. Start one on a machine with enough GPUs: "
                        "python -m pipelines.flows.machine worker remote"
                    )
                if stop.is_set():
                    client.set_flow_run_state(run, Cancelling(), force=True)
                    raise StageEnded("was cancelled on its remote worker, because the flow run was")
            stop.wait(SURVIVAL if doubted else POLL)


def is_served(client: SyncPrefectClient, work_queue: str) -> bool:
    """Return whether a worker has polled the work queue recently; each does so every few seconds."""
    polled = client.read_work_queue_by_name(work_queue, work_pool_name="remote").last_polled
    return polled is not None and (datetime.now(UTC) - polled).total_seconds() < RECENT
