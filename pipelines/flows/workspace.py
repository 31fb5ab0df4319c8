"""The clone that a flow runs in: its git state, and .prefect/ with the password of the Prefect server.

Prefect's API starts processes, so anyone who can call it acts as the user who started the server and workers.
"""

import contextlib
import re
import secrets
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from pipelines import shell

ROOT = Path(__file__).parents[2]
HOME = ROOT / ".prefect"
LINKED = "hardlink,copy"  # DVC's cache.type where nobody edits outputs: they are read-only links to its cache
PASSWORD = HOME / "password"  # as Prefect's clients and pages take it: user:password
IDENTITY = {  # git on a worker machine may have no user configured
    "GIT_AUTHOR_NAME": "convs2s flow",
    "GIT_AUTHOR_EMAIL": "flow@localhost",
    "GIT_COMMITTER_NAME": "convs2s flow",
    "GIT_COMMITTER_EMAIL": "flow@localhost",
}

# Git sets them for its hooks. In a copy of the clone, git would then work on the repository that they name.
OF_ANOTHER_REPOSITORY = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_PREFIX")


def git(root: Path, *arguments: str, env: Mapping[str, str] | None = None) -> str:
    """Run git in a clone; return its output."""
    return shell.run("git", *arguments, cwd=root, env=env)


def revision(root: Path) -> str:
    """Return the short hash of the checked-out commit, with + if files differ."""
    return git(root, "describe", "--always", "--dirty=+", "--exclude=*")


def snapshot(root: Path) -> str:
    """Return a git tree of all current files, except ignored ones, without touching the index.

    If the clone is a subfolder of a git repository, the tree has the rest as committed.
    """
    with TemporaryDirectory() as folder:
        env = {"GIT_INDEX_FILE": f"{folder}/index"}
        git(root, "read-tree", "HEAD", env=env)
        git(root, "add", "--all", ".", env=env)
        return git(root, "write-tree", env=env)


def make_home() -> None:
    """Create .prefect/ for the database and the logs, readable only by the owner."""
    HOME.mkdir(mode=0o700, exist_ok=True)
    HOME.chmod(0o700)


def make_password() -> str:
    """Return this clone's password, creating it on the first call."""
    with contextlib.suppress(FileExistsError), PASSWORD.open("x", encoding="ascii") as file:
        PASSWORD.chmod(0o600)
        file.write(f"convs2s:{secrets.token_urlsafe(24)}\n")
    return read_password()


def read_password() -> str:
    """Return the password in .prefect/, or an empty string if there is none."""
    if not PASSWORD.exists():
        return ""
    password = PASSWORD.read_text(encoding="utf-8", errors="replace").strip()
    check_password(f"{PASSWORD} (without it, `make flow` makes another)", password)
    return password


def check_password(name: str, password: str) -> None:
    """Raise a ValueError if this is not user:password; with an empty one, a server would let everybody in."""
    if not re.fullmatch(r"[^\s:]+:.+", password):
        found = "another text" if password else "nothing"
        raise ValueError(f"{name}: expected USER:PASSWORD on one line, found {found}.")
