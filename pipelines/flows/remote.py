"""Stages on other machines, which share only a git remote and a DVC remote with the orchestrator.

The orchestrator commits its files, including dvc.lock, to a branch `run/...` of the git remote and pushes the
stage's inputs to the DVC remote. A worker checks out that commit in its own clone, runs the stage, and pushes
the outputs together with DVC's run cache. The orchestrator's `dvc repro --pull` then finds that the stage has
already run, and fetches its outputs.
"""

import contextlib
from typing import Any
from uuid import UUID

import httpx
from prefect import get_client, get_run_logger, runtime
from prefect.client.schemas.objects import FlowRun
from prefect.deployments import run_deployment
from prefect.states import Cancelling, State

from pipelines.flows import workspace
from pipelines.flows.dvc_stage import DVC, GuardedRunner, StageEnded, StageFailed, Stop
from pipelines.flows.graph import Stage
from pipelines.flows.resources import queue
from pipelines.flows.workspace import ROOT, git
from pipelines.repair import commands_lock

POLL = 2.0  # seconds between queries of a remote run's state
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
    """Push the outputs of stages and the run cache to the DVC remote."""
    runner.run(*DVC, "--wait-for-lock", "push", "--run-cache", *stages)


def execute(stage: Stage, runner: GuardedRunner, git_remote: str) -> None:
    """Have a remote worker run a stage, and wait for it to finish; Prefect calls it Late while no worker can.

    If the worker or its machine dies, another one gets the stage, as often as needed: that is no retry.

    Raises StageFailed if the remote run fails; StageEnded if the runner is stopped, which cancels the remote
    run, or if somebody cancels that.
    """
    branch, commit = publish(stage, runner, git_remote)
    order = {"stage": stage.name, "branch": branch, "commit": commit, "git_remote": git_remote}
    work_queue = queue(stage.gpus)
    try:
        while True:
            remote = run_deployment(
                "run-stage/run-stage",
                parameters={**order, "seconds": runner.seconds},
                flow_run_name=f"{stage.name} for {runtime.flow_run.name}",
                tags=[stage.kind, "remote"],
                work_queue_name=work_queue,
                timeout=0,
            )
            assert isinstance(remote, FlowRun)
            get_run_logger().info(
                "%s waits for a worker that serves the work queue %s", stage.name, work_queue
            )
            state, has_begun = wait(remote.id, runner.stop)
            if not (state.is_crashed() and has_begun):  # a worker on which it cannot begin needs a person
                break
            get_run_logger().warning("%s: its worker has died: %s", stage.name, state.message)
    finally:
        git(ROOT, "push", "--quiet", git_remote, "--delete", branch)
    if state.is_cancelled():
        raise StageEnded(f"was cancelled on its remote worker: {state.message}")
    if not state.is_completed():
        raise StageFailed(f"ended as {state.name} on a remote worker: {state.message}")


def wait(run: UUID, stop: Stop) -> tuple[State[Any], bool]:
    """Wait for a flow run to finish; return its state and whether it had begun. Cancel it if `stop` is set.

    Prefect's own wait_for_flow_run returns at Crashed, and could not be interrupted by `stop`.
    """
    logged, crashed = "", False
    with get_client(sync_client=True) as client:
        while True:
            with contextlib.suppress(httpx.HTTPError):  # the server may be unreachable for a while
                found = client.read_flow_run(run)
                state = found.state
                assert state is not None
                if state.is_final() and (crashed or not state.is_crashed()):
                    return state, found.start_time is not None
                if state.name != logged:
                    logged = str(state.name)
                    get_run_logger().info("The remote run is %s", logged)
                crashed = state.is_crashed()
                if stop.is_set():
                    client.set_flow_run_state(run, Cancelling(), force=True)
                    raise StageEnded("was cancelled on its remote worker, because the flow run was")
            stop.wait(SURVIVAL if crashed else POLL)
