"""A flow run's claim on its workspace; copies with changed parameters, whose results become experiments."""

import contextlib
import hashlib
import json
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from dvc.config import Config
from filelock import FileLock, Timeout
from prefect import get_run_logger

from convs2s.config.params import Params
from pipelines import shell
from pipelines.flows.dvc_stage import DVC
from pipelines.flows.workspace import IDENTITY, LINKED, git, snapshot
from pipelines.repair import repair, write_local_config

COPIES = Path(".dvc/tmp/flows")  # removed once their runs have succeeded; ignored by git, thanks to DVC


@contextlib.contextmanager
def claim(root: Path) -> Iterator[None]:
    """Lock a workspace for one flow run, and set damaged files of DVC aside; a ValueError if it is taken."""
    try:
        with FileLock(root / ".dvc" / "tmp" / "flow.lock", timeout=0):
            for sentence in repair(root):
                get_run_logger().warning(sentence)
            yield
    except Timeout:
        raise ValueError(f"another flow run works in {root}. Wait for it to end, or cancel it.") from None


def experiment_name(overrides: Mapping[str, Any], tree: str = "") -> str:
    """Return a name for an experiment, or its copy: its overrides, and a hash of them and the git tree."""
    facts = json.dumps([overrides, tree], sort_keys=True, default=str)
    words = "-".join(f"{key.split('.')[-1]}-{value}" for key, value in overrides.items())
    readable = re.sub(r"[^A-Za-z0-9]+", "-", words).strip("-")[:40].strip("-")
    return f"{readable or 'same'}-{hashlib.sha256(facts.encode()).hexdigest()[:6]}"


def copy_workspace(root: Path, name: str, text: str, params: Params) -> Path:
    """Return a copy of the workspace in a git worktree, with uncommitted edits and the same DVC cache.

    Its params.yaml has the `text`, which means `params`. A copy of this name left by an earlier run that did
    not succeed is reused, with its checkpoints, even if the workspace has changed since.
    """
    if superproject := git(root, "rev-parse", "--show-superproject-working-tree"):
        raise ValueError(
            f"{root} is a git submodule of {superproject}; in copies of it, DVC fails. Expected a clone of "
            "its own: git clone it elsewhere; or edit params.yaml, and run without other values: make flow"
        )
    worktree = root / COPIES / name
    if not (worktree / ".git").is_file():
        shutil.rmtree(worktree, ignore_errors=True)
        git(root, "worktree", "add", "--quiet", "--force", "--detach", "--no-checkout", str(worktree))
    git(worktree, "update-ref", "--no-deref", "HEAD", git(root, "rev-parse", "HEAD"))
    git(worktree, "read-tree", "--reset", "-u", snapshot(root))
    folder = worktree / git(root, "rev-parse", "--show-prefix")  # if root is a subfolder of the repository
    repair(folder)  # an earlier run may have been killed
    config = Config(str(root / ".dvc"))  # reading it makes relative paths absolute
    cache = {"type": LINKED, "dir": root / ".dvc" / "cache"} | config.get("cache", {})
    remotes = {f'remote "{name}"': remote for name, remote in config.get("remote", {}).items()}
    settings = {"core": config.get("core", {}), "cache": cache, **remotes}  # including credentials
    write_local_config(folder, settings)
    link_ignored(
        root,
        folder,
        params.download.folder,
        params.train.start_from,
        params.augment.models,
        params.augment.text,
    )
    (folder / "params.yaml").write_text(text, encoding="utf-8")
    return folder


def link_ignored(root: Path, folder: Path, *sources: str) -> None:
    """Link the user's own texts and models, which git ignores, into a copy; absolute paths work unchanged."""
    paths = [source for source in sources if not Path(source).is_absolute()]
    options = ("-z", "--others", "--ignored", "--exclude-standard")
    # To git, a path may otherwise be a pattern: of data/[a], it would list data/a.
    own = git(root, "--literal-pathspecs", "ls-files", *options, "--", *paths) if paths else ""
    for name in filter(None, own.split("\0")):
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)
        target.symlink_to(root / name)


def keep_experiment(root: Path, folder: Path, name: str) -> None:
    """Save a copy's results as a DVC experiment of the workspace, then remove the copy."""
    shell.run(*DVC, "exp", "save", "--force", "--name", name, cwd=folder, env=IDENTITY)
    git(root, "worktree", "remove", "--force", git(folder, "rev-parse", "--show-toplevel"))
