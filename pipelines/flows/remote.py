"""Stages on other machines, which share only git and a DVC remote with the one that orchestrates.

The orchestrator commits its files, dvc.lock among them, to a branch `run/...` of the git remote and pushes
the stage's inputs to the DVC remote. A worker checks that commit out in a clone of its own, runs the stage
there and pushes its outputs with DVC's cache of runs. The orchestrator's own `dvc repro --pull` then finds
that this stage has been run already, and fetches what it gave.
"""

import threading
import time
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
from dvc.config import Config
from dvc.lock import LockError
from dvc.repo import Repo
from prefect import flow, get_client, get_run_logger, runtime
from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.objects import FlowRun
from prefect.deployments import run_deployment
from prefect.states import Cancelling, Completed, State

from pipelines.flows import dvc_stage, workspace
from pipelines.flows.dvc_stage import StageEnded, StageFailed
from pipelines.flows.graph import Stage, read_graph
from pipelines.flows.resources import visible_gpus
from pipelines.flows.watch import ended_early, stopping_when_unwanted
from pipelines.flows.workspace import Refused, git

DEPLOYMENT = "run-stage/remote"
LOOK = 2.0
"""Seconds between two looks at a remote run."""


def check(root: Path, git_remote: str) -> None:
    """See that there is a git remote and a DVC remote to share.

    Raises:
        Refused: if one of them is missing, or cannot do this.
    """
    if git_remote not in git(root, "remote").split():
        raise Refused(
            f"git_remote: found {git_remote!r}, but {root} has {git(root, 'remote').split() or 'none'}. "
            "Remote workers fetch commits from it: git remote add NAME URL."
        )
    config = Config(str(root / ".dvc"))
    default = config.get("core", {}).get("remote")
    if str(config.get("remote", {}).get(default, {}).get("url", "")).startswith("http"):
        raise Refused(
            f"the DVC remote {default} is plain http, which cannot hold DVC's cache of runs, by "
            "which a stage that ran elsewhere is known here. Wanted a folder, S3, SSH, ...: "
            "dvc remote add --default NAME URL."
        )
    if not default:
        raise Refused(
            f"{root} has no default DVC remote, by which machines share data. Wanted one that all workers "
            "reach, and that is not plain http: dvc remote add --default NAME URL."
        )


def publish(stage: Stage, root: Path, git_remote: str, run_id: str, stop: threading.Event) -> tuple[str, str]:
    """Push what a worker needs for a stage; return branch and commit."""
    if stage.parents:
        _dvc(root, stop, "push", "--run-cache", *sorted(stage.parents))
    while not stop.is_set():
        try:
            with Repo(str(root)) as repo, repo.lock:  # nobody writes dvc.lock meanwhile
                tree = workspace.snapshot(root)
            break
        except LockError:
            time.sleep(0.2)  # a stage is being finished
    else:
        raise StageEnded("was not started, for the flow run is cancelled or has ended")
    who = {f"GIT_{role}_{part}": text for role in ("AUTHOR", "COMMITTER") for part, text in WHO.items()}
    commit = git(root, "commit-tree", tree, "-p", "HEAD", "-m", f"Inputs of {stage.name}", env=who)
    branch = f"run/{run_id}/{stage.name}-{commit[:12]}"  # rows of a sweep have the same stages
    git(root, "push", "--quiet", "--force", git_remote, f"{commit}:refs/heads/{branch}")
    return branch, commit


WHO = {"NAME": "convs2s flow", "EMAIL": "flow@localhost"}


def _dvc(root: Path, stop: threading.Event, *arguments: str) -> None:
    """Run a DVC command that moves data, under the process guard."""
    logger = get_run_logger()

    def hear(line: str, passing: bool) -> None:
        if not passing:
            logger.info(line)

    dvc_stage.run_guarded(
        [*dvc_stage.DVC, "--wait-for-lock", *arguments],
        root,
        dvc_stage.environment(None),
        24 * 3600.0,
        stop,
        hear,
    )


def execute(stage: Stage, root: Path, git_remote: str, seconds: float, stop: threading.Event) -> None:
    """Have a remote worker run a stage, and wait for its end.

    Raises:
        StageFailed: if it failed there, with the message of its run.
        StageEnded: if `stop` was set; the remote run is cancelled then.
    """
    run_id = str(runtime.flow_run.root_flow_run_id or runtime.flow_run.id)
    branch, commit = publish(stage, root, git_remote, run_id, stop)
    try:
        _dispatch(stage, branch, commit, git_remote, seconds, stop)
    finally:
        git(root, "push", "--quiet", git_remote, "--delete", branch)


def _dispatch(
    stage: Stage, branch: str, commit: str, git_remote: str, seconds: float, stop: threading.Event
) -> None:
    remote = run_deployment(
        DEPLOYMENT,
        parameters={
            "stage": stage.name,
            "branch": branch,
            "commit": commit,
            "git_remote": git_remote,
            "seconds": seconds,
        },
        flow_run_name=f"{stage.name} for {runtime.flow_run.name}",
        tags=[stage.kind, "remote"],
        timeout=0,
    )
    assert isinstance(remote, FlowRun)
    get_run_logger().info("A remote worker is to run %s: flow run %s", stage.name, remote.name)
    with get_client(sync_client=True) as client:
        state = _wait(client, remote.id, stop)
    if state.is_cancelled():
        raise StageEnded(f"was cancelled on its remote worker: {state.message}")
    if not state.is_completed():
        raise StageFailed(f"ended as {state.name} on a remote worker: {state.message}")


def _wait(client: SyncPrefectClient, run: UUID, stop: threading.Event) -> State[Any]:
    """Wait for a flow run's end; cancel it when `stop` is set."""
    told, doubted = "", False
    while True:
        try:
            state = client.read_flow_run(run).state
            if state and state.is_crashed() and not doubted:
                doubted = True  # one that lives says so within seconds
                stop.wait(5 * LOOK)
                continue
            if state and state.is_final():
                return state
            doubted = False
            if state and state.name != told:
                told = str(state.name)
                get_run_logger().info("The remote run is %s", told)
            if stop.is_set():
                client.set_flow_run_state(run, Cancelling(), force=True)
                raise StageEnded(
                    "was cancelled on its remote worker, for the flow run is cancelled or has ended"
                )
        except httpx.HTTPError:
            pass  # the server is away for a while
        stop.wait(LOOK)


@flow(name="run-stage", flow_run_name="{stage}", persist_result=False)
def run_stage(stage: str, branch: str, commit: str, git_remote: str, seconds: float = 86_400.0) -> State[Any]:
    """Run one stage in this worker's clone for an orchestrator elsewhere.

    Args:
        stage: item, as DVC names it.
        branch: of the git remote, with the orchestrator's files.
        commit: its commit.
        git_remote: name of the git remote in this clone.
        seconds: deadline.
    """
    root, stop = workspace.ROOT, threading.Event()
    logger = get_run_logger()
    with workspace.claim(root, f"run-stage {runtime.flow_run.name}"):
        check_out(root, git_remote, branch, commit)
        item = read_graph(root)[stage]
        gpus = visible_gpus()
        if gpus and item.gpus > len(gpus):
            raise Refused(
                f"{stage} takes {item.gpus} GPUs, but this worker shows {gpus}. Lower train.workers."
            )
        env = dvc_stage.environment(gpus[: item.gpus] if gpus else None)

        def hear(line: str, passing: bool) -> None:
            if not passing:
                logger.info(line)

        with stopping_when_unwanted(stop) as reasons:
            try:
                outcome = dvc_stage.reproduce(stage, root, env, seconds, stop, hear, pull=True)
                _dvc(root, stop, "push", "--run-cache", stage)
            except StageEnded as ended:
                if not reasons:  # its deadline
                    raise
                return ended_early(reasons[0], str(ended))
    return Completed(name=outcome.value, message=f"{stage}: {outcome.value.lower()} in {root.name}")


def check_out(root: Path, git_remote: str, branch: str, commit: str) -> None:
    """Check a run's commit out in a clone that workers use alone.

    Raises:
        Refused: if files are edited there, since the checkout would lose that.
    """
    edited = [name for name in git(root, "diff", "--name-only", "HEAD").splitlines() if name != "dvc.lock"]
    if edited:
        raise Refused(
            f"{root} has edited files: {', '.join(edited)}. A remote worker checks out what it is sent; give "
            "it a clone of its own, or commit the edits and reset."
        )
    git(root, "fetch", "--quiet", git_remote, f"refs/heads/{branch}")
    git(root, "checkout", "--quiet", "--force", "--detach", commit)
