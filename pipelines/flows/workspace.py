"""The clone that a flow runs in: whether a run can start there, its lock, and its git state."""

import contextlib
import fcntl
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import psutil

from convs2s.config.load import load_params
from pipelines import shell
from pipelines.repair import find_dvc, repair

ROOT = Path(__file__).parents[2]
IDENTITY = {
    f"GIT_{role}_{part}": value  # git on a worker machine may have no user configured
    for role in ("AUTHOR", "COMMITTER")
    for part, value in (("NAME", "convs2s flow"), ("EMAIL", "flow@localhost"))
}


def git(root: Path, *arguments: str, env: Mapping[str, str] | None = None) -> str:
    """Run git in a clone; return its output."""
    return shell.run("git", *arguments, cwd=root, env=env)


def check_workspace(root: Path) -> list[str]:
    """Repair DVC files damaged by a kill, and check that a flow can start; return a sentence for each repair.

    Raises a ValueError if params.yaml is invalid or DVC is running.
    """
    load_params(root / "params.yaml")
    if process := find_dvc(root):
        raise ValueError(
            f"a DVC command is running in {root}: expected none, found process {process.pid}. Wait for it to "
            "finish, or stop it, and try again."
        )
    return repair(root)


@contextlib.contextmanager
def claim(root: Path, who: str) -> Iterator[None]:
    """Lock a workspace for one flow run; raise a ValueError that names the holder if it is already locked.

    The operating system releases the lock however the run ends, kill -9 included. A worker that was started
    in another clone than this code's is an error, too.
    """
    if "PREFECT__FLOW_RUN_ID" in os.environ and (place := Path(psutil.Process(os.getppid()).cwd())) != ROOT:
        raise ValueError(
            f"the worker of this run was started in {place}, but its Python environment has the code of "
            f"{ROOT}. Start it with: python -m pipelines.flows.machine worker POOL"
        )
    path = root / ".dvc" / "tmp" / "flow.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+", encoding="utf-8") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            stream.seek(0)
            raise ValueError(
                f"another flow run works in {root}: {stream.read().strip() or 'one that has just started'}. "
                "Wait for it to end, or cancel it; a second clone can run at the same time."
            ) from None
        stream.truncate(0)
        stream.write(f"{who}, process {os.getpid()}\n")
        stream.flush()
        yield


def revision(root: Path) -> str:
    """Return the short hash of the checked-out commit, with + if files differ; `none` without a commit."""
    try:
        return git(root, "describe", "--always", "--dirty=+", "--exclude=*")
    except shell.CommandFailed:
        return "none"


def snapshot(root: Path) -> str:
    """Return a git tree of all current files, except ignored ones, without touching the index."""
    index = root / ".dvc" / "tmp" / f"index-{os.getpid()}"
    index.parent.mkdir(parents=True, exist_ok=True)
    env = {"GIT_INDEX_FILE": str(index)}
    try:
        git(root, "read-tree", "HEAD", env=env)
        git(root, "add", "--all", env=env)
        return git(root, "write-tree", env=env)
    finally:
        index.unlink(missing_ok=True)
