"""The clone that a flow works in, and whether it may start there."""

import contextlib
import fcntl
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import psutil

from convs2s.config.load import load_params
from pipelines import shell
from pipelines.repair.clone import repair
from pipelines.repair.locks import at_work
from pipelines.repair.rwlock import readers_and_writers

ROOT = Path(__file__).parents[2]
IDENTITY = {
    f"GIT_{role}_{part}": value  # a machine of workers may have no name of its own
    for role in ("AUTHOR", "COMMITTER")
    for part, value in (("NAME", "convs2s flow"), ("EMAIL", "flow@localhost"))
}


def git(root: Path, *arguments: str, env: Mapping[str, str] | None = None) -> str:
    """Run git in a clone; return what it prints."""
    return shell.run("git", *arguments, cwd=root, env=env)


def check_workspace(root: Path) -> list[str]:
    """Repair what a kill has left of DVC's files, and check that a flow may start; return what was repaired.

    Raises a ValueError if params.yaml is invalid or DVC is at work. Dead processes on its list do not matter.
    """
    load_params(root / "params.yaml")
    repaired = repair(root)
    for holder in readers_and_writers(root):
        if psutil.pid_exists(holder["pid"]):
            raise at_work(root, f"process {holder['pid']}, {holder['cmd']}")
    return repaired


@contextlib.contextmanager
def claim(root: Path, who: str) -> Iterator[None]:
    """Hold a workspace for one flow run; raise a ValueError if another holds it, with its name.

    The system releases it however the run ends, kill -9 included.
    """
    path = root / ".dvc" / "tmp" / "flow.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+", encoding="utf-8") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            stream.seek(0)
            raise ValueError(
                f"another flow run works in {root}: {stream.read().strip() or 'one that has just begun'}. "
                "Wait for its end, or cancel it; a second clone can run beside it."
            ) from None
        stream.truncate(0)
        stream.write(f"{who}, process {os.getpid()}\n")
        stream.flush()
        yield


def revision(root: Path) -> str:
    """Return the commit that is checked out, short, with + if files differ from it; none without a commit."""
    try:
        return git(root, "describe", "--always", "--dirty=+", "--exclude=*")
    except shell.CommandFailed:
        return "none"


def snapshot(root: Path) -> str:
    """Return git's tree of all files as they are now, ignored ones aside; index and files stay untouched."""
    index = root / ".dvc" / "tmp" / f"index-{os.getpid()}"
    index.parent.mkdir(parents=True, exist_ok=True)
    env = {"GIT_INDEX_FILE": str(index)}
    try:
        git(root, "read-tree", "HEAD", env=env)
        git(root, "add", "--all", env=env)
        return git(root, "write-tree", env=env)
    finally:
        index.unlink(missing_ok=True)
