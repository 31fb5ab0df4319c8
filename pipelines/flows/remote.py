"""Stages on other machines, which share only git and a DVC remote with the one that orchestrates.

The orchestrator commits its files, dvc.lock among them, to a branch `run/...` of the git remote and pushes
the stage's inputs to the DVC remote. A worker checks that commit out in a clone of its own, runs the stage
there and pushes its outputs with DVC's cache of runs. The orchestrator's own `dvc repro --pull` then finds
that this stage has been run already, and fetches what it gave.
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
from pipelines.repair.locks import COMMANDS, locked

POLL = 2.0  # seconds between two queries of a remote run's state
RECENT = 20.0  # seconds since a worker's last query after which it is no longer there
SURVIVAL = 10.0  # seconds within which a run that the server takes for Crashed, but which lives, says so


def check(root: Path, git_remote: str) -> None:
    """Check that there are a git remote and a DVC remote to share; raise a ValueError if not."""
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
            f"{found}. Machines share data and DVC's cache of runs through one, and plain http cannot hold "
            "that cache. Wanted a folder, S3, SSH, ...: dvc remote add --default NAME URL."
        )


def publish(stage: Stage, runner: GuardedRunner, git_remote: str) -> tuple[str, str]:
    """Push what a worker needs for a stage; return branch and commit."""
    if stage.parents:
        push(runner, *sorted(stage.parents))
    tree = ""
    while not tree:
        if runner.stop.is_set():
            raise StageNotStarted
        with contextlib.suppress(ValueError), locked(runner.root, COMMANDS):
            tree = workspace.snapshot(runner.root)  # nobody writes dvc.lock meanwhile
    message = f"Inputs of {stage.name}"
    commit = git(runner.root, "commit-tree", tree, "-p", "HEAD", "-m", message, env=workspace.IDENTITY)
    run_id = runtime.flow_run.root_flow_run_id or runtime.flow_run.id
    branch = f"run/{run_id}/{stage.name}-{commit[:12]}"  # rows of a sweep have the same stages
    git(ROOT, "push", "--quiet", "--force", git_remote, f"{commit}:refs/heads/{branch}")
    return branch, commit


def push(runner: GuardedRunner, *stages: str) -> None:
    """Push the outputs of stages to the DVC remote, with the cache of runs, under the process guard."""
    runner.run(*DVC, "--wait-for-lock", "push", "--run-cache", *stages)


def execute(stage: Stage, runner: GuardedRunner, git_remote: str, patience: float) -> None:
    """Have a remote worker run a stage, and wait for its end; if the runner is to stop, the run is cancelled.

    Raises StageFailed with the message of its run, or if no worker that can take it has been there for
    `patience` seconds; else StageEnded.
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
    """Whether a worker is there for a run that nobody has taken yet."""

    name: str  # of the work queue
    patience: float
    alone: float = 0.0  # since when nobody has been there; 0 while somebody is

    def look(self, client: SyncPrefectClient) -> bool:
        """Tell whether to go on waiting; logs once when nobody is there."""
        if self.served(client):
            self.alone = 0.0
        elif not self.alone:
            self.alone = time.monotonic()
            get_run_logger().warning("%s Waiting %g minutes for one.", self.fault(), self.patience / 60)
        return not self.alone or time.monotonic() < self.alone + self.patience

    def served(self, client: SyncPrefectClient) -> bool:
        """Tell whether a worker has lately asked for runs of the work queue; each does every few seconds."""
        polled = client.read_work_queue_by_name(self.name, work_pool_name="remote").last_polled
        return polled is not None and (datetime.now(UTC) - polled).total_seconds() < RECENT

    def fault(self) -> str:
        """Return what is wrong while nobody is there, and what to do."""
        wanted = "" if self.name == queue(0) else f" with {self.name.removeprefix('gpus-')} GPU(s)"
        return (
            f"No remote worker{wanted} is there: none asks for runs of the work queue {self.name}. Start one "
            "on such a machine: python -m pipelines.flows.machine worker remote."
        )


def wait(run: UUID, stop: Stop, watch: WorkerWatch) -> State[Any]:
    """Wait for a flow run's end; cancel it when `stop` is set, or when no worker has been there for too long.

    Prefect's own wait_for_flow_run ends at Crashed, and hears of no cancellation here.
    """
    logged, doubted = "", False
    with get_client(sync_client=True) as client:
        while True:
            with contextlib.suppress(httpx.HTTPError):  # the server is away for a while
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
                    raise StageFailed(f"waited {watch.patience / 60:g} minutes for nobody. {watch.fault()}")
                if stop.is_set():
                    client.set_flow_run_state(run, Cancelling(), force=True)
                    raise StageEnded(
                        "was cancelled on its remote worker, as the flow run was cancelled or ended"
                    )
            stop.wait(SURVIVAL if doubted else POLL)
