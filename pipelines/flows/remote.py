"""Stages on other machines, which share only git and a DVC remote with the one that orchestrates.

The orchestrator commits its files, dvc.lock among them, to a branch `run/...` of the git remote and pushes
the stage's inputs to the DVC remote. A worker checks that commit out in a clone of its own, runs the stage
there and pushes its outputs with DVC's cache of runs. The orchestrator's own `dvc repro --pull` then finds
that this stage has been run already, and fetches what it gave.
"""

import contextlib
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
from dvc.config import Config
from dvc.lock import LockError
from dvc.repo import Repo
from prefect import get_client, get_run_logger, runtime
from prefect.client.schemas.objects import FlowRun
from prefect.deployments import run_deployment
from prefect.states import Cancelling, State

from pipelines.flows import workspace
from pipelines.flows.dvc_stage import DVC, GuardedRunner, StageEnded, StageFailed, Stop, environment
from pipelines.flows.graph import HOURS, Stage
from pipelines.flows.workspace import ROOT, git

POLL = 2.0  # seconds between two queries of a remote run's state
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


def publish(stage: Stage, root: Path, git_remote: str, stop: Stop) -> tuple[str, str]:
    """Push what a worker needs for a stage; return branch and commit."""
    if stage.parents:
        push(root, stop, *sorted(stage.parents))
    tree = ""
    while not tree and not stop.wait(0.2):
        with contextlib.suppress(LockError), Repo(str(root)) as repo, repo.lock:
            tree = workspace.snapshot(root)  # nobody writes dvc.lock meanwhile
    if not tree:
        raise StageEnded("was not started, for the flow run is cancelled or has ended")
    message = f"Inputs of {stage.name}"
    commit = git(root, "commit-tree", tree, "-p", "HEAD", "-m", message, env=workspace.IDENTITY)
    run_id = runtime.flow_run.root_flow_run_id or runtime.flow_run.id
    branch = f"run/{run_id}/{stage.name}-{commit[:12]}"  # rows of a sweep have the same stages
    git(ROOT, "push", "--quiet", "--force", git_remote, f"{commit}:refs/heads/{branch}")
    return branch, commit


def push(root: Path, stop: Stop, *stages: str) -> None:
    """Push the outputs of stages to the DVC remote, with the cache of runs, under the process guard."""
    runner = GuardedRunner(root, environment(None), 3600 * HOURS, stop, get_run_logger().info)
    runner.run(*DVC, "--wait-for-lock", "push", "--run-cache", *stages)


def execute(stage: Stage, root: Path, git_remote: str, seconds: float, stop: Stop) -> None:
    """Have a remote worker run a stage, and wait for its end; if `stop` is set, the remote run is cancelled.

    Raises StageFailed with the message of its run, or StageEnded.
    """
    branch, commit = publish(stage, root, git_remote, stop)
    order = {"stage": stage.name, "branch": branch, "commit": commit, "git_remote": git_remote}
    try:
        remote = run_deployment(
            "run-stage/remote",
            parameters={**order, "seconds": seconds},
            flow_run_name=f"{stage.name} for {runtime.flow_run.name}",
            tags=[stage.kind, "remote"],
            timeout=0,
        )
        assert isinstance(remote, FlowRun)
        get_run_logger().info("A remote worker is to run %s: flow run %s", stage.name, remote.name)
        state = wait(remote.id, stop)
    finally:
        git(ROOT, "push", "--quiet", git_remote, "--delete", branch)
    if state.is_cancelled():
        raise StageEnded(f"was cancelled on its remote worker: {state.message}")
    if not state.is_completed():
        raise StageFailed(f"ended as {state.name} on a remote worker: {state.message}")


def wait(run: UUID, stop: Stop) -> State[Any]:
    """Wait for a flow run's end; cancel it when `stop` is set.

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
                if stop.is_set():
                    client.set_flow_run_state(run, Cancelling(), force=True)
                    raise StageEnded(
                        "was cancelled on its remote worker, as the flow run was cancelled or ended"
                    )
            stop.wait(SURVIVAL if doubted else POLL)
