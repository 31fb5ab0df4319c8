"""The clone that a flow runs in, and its git state."""

import os
from collections.abc import Mapping
from pathlib import Path

from pipelines import shell

ROOT = Path(__file__).parents[2]
IDENTITY = {
    f"GIT_{role}_{part}": value  # git on a worker machine may have no user configured
    for role in ("AUTHOR", "COMMITTER")
    for part, value in (("NAME", "convs2s flow"), ("EMAIL", "flow@localhost"))
}


def git(root: Path, *arguments: str, env: Mapping[str, str] | None = None) -> str:
    """Run git in a clone; return its output."""
    return shell.run("git", *arguments, cwd=root, env=env)


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
