"""The clone that a flow works in: whether it may start there, and copies of it for other parameters."""

import contextlib
import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil
from dvc.config import Config
from ruamel.yaml import YAML, YAMLError

from convs2s.config.load import load_params

ROOT = Path(__file__).parent.parent.parent
COPIES = Path(".dvc/tmp/flows")
"""Where copies of the workspace live until their runs have ended well; below what DVC keeps out of git."""


class Refused(ValueError):
    """A flow does not start; the message says why, and what to do."""


def git(root: Path, *arguments: str, env: Mapping[str, str] | None = None) -> str:
    """Run git in a clone; return what it prints.

    Raises:
        Refused: if git fails, with its message.
    """
    done = subprocess.run(
        ["git", *arguments],
        cwd=root,
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise Refused(f"git {' '.join(arguments)} failed in {root}: {done.stderr.strip()}")
    return done.stdout.strip()


def check_workspace(root: Path) -> None:
    """See that a flow may start here.

    Raises:
        Refused: if params.yaml is not valid, dvc.lock is no lock file, or a DVC command is at work.
    """
    try:
        load_params(root / "params.yaml")
    except (ValueError, FileNotFoundError) as error:
        raise Refused(str(error)) from error
    check_lock_file(root / "dvc.lock")
    check_nobody_works(root / ".dvc" / "tmp" / "rwlock")


def check_lock_file(path: Path) -> None:
    """See that dvc.lock, if there is one, is whole.

    Raises:
        Refused: if it has conflict marks of git, or is not what DVC writes.
    """
    if not path.exists():
        return
    text = path.read_text(encoding="utf-8", errors="replace")
    marks = re.search(r"^(<{7}|>{7}) .*$", text, re.MULTILINE)
    try:
        content = YAML(typ="safe", pure=True).load(text) if not marks else None
    except YAMLError as error:
        raise Refused(f"{path} is not valid YAML: {error}. Restore it: git checkout dvc.lock") from error
    if not isinstance(content, dict) or not isinstance(content.get("stages"), dict):
        found = f"git's conflict mark {marks[0]!r}" if marks else "no table of stages"
        raise Refused(
            f"{path} is dirty: found {found}, wanted the lock file that DVC writes. Restore it "
            "(git checkout dvc.lock), or remove it: what was run stays in DVC's cache and is restored."
        )


def check_nobody_works(path: Path) -> None:
    """See that no DVC command is at work in this clone, by DVC's own list of who reads and writes.

    Raises:
        Refused: if one is, with its process. Dead ones, which stand there after a kill, are no hindrance.
    """
    try:
        held = json.loads(path.read_text(encoding="utf-8") or "{}")
    except (FileNotFoundError, ValueError):
        return  # DVC itself repairs a damaged one
    holders = [*held.get("write", {}).values()]
    for readers in held.get("read", {}).values():
        holders += readers
    for holder in holders:
        if is_dvc(holder["pid"]):
            raise Refused(
                f"a DVC command is at work in {path.parent.parent.parent}: process {holder['pid']}, "
                f"{holder['cmd']}. Wait until it has ended, or end it; then start again."
            )


def is_dvc(pid: int) -> bool:
    """Tell whether a process of this number is one of DVC, not another that has got the number since."""
    try:
        return any("dvc" in part for part in psutil.Process(pid).cmdline())
    except psutil.Error:
        return False


@contextlib.contextmanager
def claim(root: Path, who: str) -> Iterator[None]:
    """Hold a workspace for one flow run; the system gives it back however the run ends, kill -9 included.

    Raises:
        Refused: if another flow run holds it, with its name.
    """
    path = root / ".dvc" / "tmp" / "flow.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+", encoding="utf-8") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            stream.seek(0)
            raise Refused(
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
        commit = git(root, "rev-parse", "--short", "HEAD")
        return commit + ("+" if git(root, "status", "--porcelain", "-uno") else "")
    except Refused:
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


def name_of(overrides: Mapping[str, Any], tree: str) -> str:
    """Return a name for an experiment: its overrides, readable, and a hash that tells it from others.

    Args:
        tree: the files that it begins with, as `snapshot` names them.
    """
    facts = json.dumps([overrides, tree], sort_keys=True, default=str)
    words = "-".join(f"{key.split('.')[-1]}-{value}" for key, value in overrides.items())
    readable = re.sub(r"[^A-Za-z0-9]+", "-", words).strip("-")[:40].strip("-")
    return f"{readable or 'same'}-{hashlib.sha256(facts.encode()).hexdigest()[:6]}"


def copy_workspace(root: Path, name: str, overrides: Mapping[str, Any]) -> Path:
    """Return a clone with the workspace's files as they are, other parameters, and the same DVC cache.

    One that an earlier run has left, since it did not end well, is taken up again with its checkpoints.

    Raises:
        Refused: if the overrides do not give valid parameters.
    """
    folder = root / COPIES / name
    tree = snapshot(root)
    if not (folder / ".git").is_dir():
        shutil.rmtree(folder, ignore_errors=True)
        git(root, "clone", "--quiet", "--shared", "--no-checkout", str(root), str(folder))
    git(folder, "update-ref", "--no-deref", "HEAD", git(root, "rev-parse", "HEAD"))
    git(folder, "read-tree", "--reset", "-u", tree)
    share_remotes(root, folder)
    link_ignored_inputs(root, folder)
    override(folder / "params.yaml", overrides)
    return folder


def share_remotes(root: Path, folder: Path) -> None:
    """Give a copy the workspace's git remotes, DVC remotes with their credentials, and DVC cache."""
    for name in git(root, "remote").split():
        url = git(root, "remote", "get-url", name)
        if (root / url).exists():  # a path, which git takes from the clone's own folder
            url = str((root / url).resolve())
        known = name in git(folder, "remote").split()
        git(folder, "remote", "set-url" if known else "add", name, url)
    mine = Config(str(root / ".dvc"))
    with Config(str(folder / ".dvc")).edit("local") as local:
        local["remote"] = mine.get("remote", {})  # DVC has made relative paths whole when it read them
        if default := mine.get("core", {}).get("remote"):
            local.setdefault("core", {})["remote"] = default
        local.setdefault("cache", {})["dir"] = str(cache_folder(root))


def cache_folder(root: Path) -> Path:
    """Return the folder of a workspace's DVC cache."""
    configured = Config(str(root / ".dvc")).get("cache", {}).get("dir")
    return Path(configured) if configured else root / ".dvc" / "cache"


def link_ignored_inputs(root: Path, folder: Path) -> None:
    """Link a user's own texts, which git ignores, into a copy; elsewhere they stay where they are.

    Raises:
        Refused: if the copy would not find them.
    """
    source = load_params(root / "params.yaml").download.folder
    if not Path(os.path.normpath(root / source)).is_relative_to(root):  # a link within is within
        if not Path(source).is_absolute():
            raise Refused(
                f"download.folder: found {source}, which lies outside the repository. Overrides and sweeps "
                "run in copies, where it would be another folder; wanted the whole path: "
                f"{(root / source).resolve()}"
            )
        return
    own = git(root, "ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--", str(source))
    for name in filter(None, own.split("\0")):
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)
        try:
            target.hardlink_to(root / name)
        except OSError:  # another file system
            shutil.copy2(root / name, target)


def override(path: Path, overrides: Mapping[str, Any]) -> None:
    """Set values in a params.yaml, keeping its comments.

    Args:
        overrides: dotted names, as train.dropout or download.train.0.pairs, and their values.

    Raises:
        Refused: if a name does not lead anywhere, or the values are not valid.
    """
    yaml = YAML()
    content = yaml.load(path.read_text(encoding="utf-8"))
    for name, value in overrides.items():
        *sections, last = [int(part) if part.isdigit() else part for part in name.split(".")]
        place = content
        try:
            for section in sections:
                place = place[section]
            place[last]  # a new key would be a typo
            place[last] = value
        except (KeyError, IndexError, TypeError) as error:
            raise Refused(
                f"overrides: params.yaml has no {name} (found nothing under {error}). Wanted a dotted name "
                "that it has, for example train.dropout."
            ) from error
    with path.open("w", encoding="utf-8") as stream:
        yaml.dump(content, stream)
    try:
        load_params(path)
    except ValueError as error:
        raise Refused(f"overrides do not fit: {str(error).replace(str(path), 'params.yaml')}") from error


def keep_experiment(root: Path, folder: Path, name: str) -> None:
    """Keep a copy's results as a DVC experiment of the workspace, then remove the copy.

    Raises:
        Refused: if DVC or git fail; the copy stays then.
    """
    from pipelines.flows.dvc_stage import DVC, environment  # noqa: PLC0415

    env = environment(None)
    for role in ("AUTHOR", "COMMITTER"):  # a machine of workers may have no name of its own
        env.setdefault(f"GIT_{role}_NAME", "convs2s flow")
        env.setdefault(f"GIT_{role}_EMAIL", "flow@localhost")
    saved = subprocess.run(
        [*DVC, "exp", "save", "--force", "--name", name],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    if saved.returncode:
        raise Refused(f"dvc exp save failed in {folder}: {saved.stderr.strip()}")
    git(root, "fetch", "--quiet", "--force", str(folder), f"refs/exps/*/{name}:refs/exps/*/{name}")
    for costs in folder.glob("data/checkpoints/*/costs"):  # no outputs, so DVC leaves them
        shutil.copytree(costs, root / costs.relative_to(folder), dirs_exist_ok=True)
    shutil.rmtree(folder)
