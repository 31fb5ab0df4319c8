"""Stages on other machines, which share only a git remote and a DVC remote with the orchestrator.

The orchestrator commits its files, including dvc.lock, to a branch `run/...` of the git remote and pushes the
stage's inputs to the DVC remote. A worker checks out that commit in its own clone, runs the stage, and pushes
the outputs together with DVC's run cache. The orchestrator's `dvc repro --pull` then finds that the stage has
already run, and fetches its outputs.
"""

import contextlib
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
from dvc.config import Config
from dvc.lock import LockError
from prefect import get_client, get_run_logger, runtime
from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.objects import FlowRun
from prefect.deployments import run_deployment
from prefect.states import Cancelled, Cancelling, State

from pipelines.flows import workspace
from pipelines.flows.dvc_stage import DVC, GuardedRunner, StageEnded, StageFailed, StageNotStarted, Stop
from pipelines.flows.graph import Stage
from pipelines.flows.resources import queue
from pipelines.flows.workspace import ROOT, git
from pipelines.repair import commands_lock

POLL = 2.0  # seconds between queries of a remote run's state
RECENT = 20.0  # seconds since its last query after which a worker counts as offline
SURVIVAL = 10.0  # seconds in which a live run that the server has marked Crashed corrects its state


def check(root: Path, git_remote: str) -> None:
    """Check that the git remote and a shareable DVC remote exist; raise a ValueError if not."""
    if git_remote not in git(root, "remote").split():
        raise ValueError(
            f"git_remote: found {git_remote!r}, but {root} has {git(root, 'remote').split() or 'none'}. "
            "Remote workers fetch commits from it: git remote add NAME URL."
        )
    config = Config(str(root / ".dvc"))
    default = config.get("core", {}).get("remote")
    url = config.get("remote", {}).get(default, {}).get("url", "")
    if not default or url.startswith("http"):
        found = f"the DVC remote {default} is plain http" if default else f"{root} has no default DVC remote"
        raise ValueError(
            f"{found}. Machines share data and DVC's run cache through a DVC remote, and plain http cannot "
            "store the run cache. Wanted a folder, S3, SSH, ...: dvc remote add --default NAME URL."
        )


def publish(stage: Stage, runner: GuardedRunner, git_remote: str) -> tuple[str, str]:
    """Push everything that a worker needs for a stage; return branch and commit."""
    if stage.parents:
        push(runner, *sorted(stage.parents))
    tree = ""
    while not tree:
        if runner.stop.is_set():
            raise StageNotStarted
        with contextlib.suppress(LockError), commands_lock(runner.root):
            tree = workspace.snapshot(runner.root)  # while nobody writes dvc.lock
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
    seconds; StageEnded if the runner is stopped, which cancels the remote run, or if that was cancelled
    elsewhere.
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
        state = wait(remote.id, runner.stop, WorkerWatch(queue(stage.gpus), patience))
    finally:
        git(ROOT, "push", "--quiet", git_remote, "--delete", branch)
    if state.is_cancelled():
        raise StageEnded(f"was cancelled on its remote worker: {state.message}")
    if not state.is_completed():
        raise StageFailed(f"ended as {state.name} on a remote worker: {state.message}")


@dataclass
class WorkerWatch:
    """Watches whether a worker is online for a run that is still waiting for one."""

    name: str  # of the work queue
    patience: float  # seconds
    alone: float = 0.0  # time since which no worker has been online; 0 while one is

    def look(self, client: SyncPrefectClient) -> bool:
        """Return whether to keep waiting; log a warning, once, while no worker is online."""
        if self.served(client):
            self.alone = 0.0
        elif not self.alone:
            self.alone = time.monotonic()
            get_run_logger().warning("%s Waiting %g minutes for one.", self.fault(), self.patience / 60)
        return not self.alone or time.monotonic() < self.alone + self.patience

    def served(self, client: SyncPrefectClient) -> bool:
        """Return whether a worker has polled the work queue recently; each does so every few seconds."""
        polled = client.read_work_queue_by_name(self.name, work_pool_name="remote").last_polled
        return polled is not None and (datetime.now(UTC) - polled).total_seconds() < RECENT

    def fault(self) -> str:
        """Return the error message: no worker is online, and how to start one."""
        wanted = "" if self.name == queue(0) else f" with {self.name.removeprefix('gpus-')} GPU(s)"
        return (
            f"No remote worker{wanted} is online: none polls the work queue {self.name}. Start one on a "
            "suitable machine: python -m pipelines.flows.machine worker remote."
        )


def wait(run: UUID, stop: Stop, watch: WorkerWatch) -> State[Any]:
    """Wait for a flow run to finish; cancel it if `stop` is set, or if no worker is online for too long.

    Prefect's own wait_for_flow_run returns at Crashed, and could not be interrupted by `stop`.
    """
    logged, doubted = "", False
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
                if (state.is_scheduled() or state.is_pending()) and not watch.look(client):
                    client.set_flow_run_state(run, Cancelled(message=watch.fault()), force=True)
                    raise StageFailed(f"waited {watch.patience / 60:g} minutes in vain. {watch.fault()}")
                if stop.is_set():
                    client.set_flow_run_state(run, Cancelling(), force=True)
                    raise StageEnded(
                        "was cancelled on its remote worker because the flow run was cancelled or ended"
                    )
            stop.wait(SURVIVAL if doubted else POLL)
