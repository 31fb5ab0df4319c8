"""DVC's list of processes that read and write paths, .dvc/tmp/rwlock.

DVC writes it in place. A kill during the write leaves it empty or truncated, and every later command fails.
DVC itself drops dead processes from the list, unless their process ID is still in use, by a zombie or by an
unrelated program that has been given it since: then DVC waits for that.
"""

import contextlib
import json
from pathlib import Path
from typing import Any

import psutil

from convs2s.text.corpus.files import atomic_path
from pipelines.repair.locks import LIST, idle, is_inside, locked


def repair_rwlock(root: Path) -> list[str]:
    """Remove the list if it is unreadable, else drop processes that are not DVC; return what was done.

    Raises:
        ValueError: if the list is unreadable and a DVC command is running, or DVC does not release a lock.
    """
    path = root / ".dvc" / "tmp" / "rwlock"
    if not path.exists():
        return []
    with locked(root, LIST):  # as its writers do, so a damaged list is not an unfinished one
        held = read(path)
        if held is not None:
            return drop_foreign(path, held, root)
    with idle(root, path):
        if path.exists() and read(path) is None:
            path.unlink()
            return [f"{path} was left unreadable by a kill; removed it."]
    return []


def read(path: Path) -> dict[str, Any] | None:
    """Return readers and writers by path; None if DVC could not read them."""
    try:
        held = json.loads(path.read_text(encoding="utf-8"))
        all(int(entry["pid"]) for entry in entries(held))
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    return dict(held)


def readers_and_writers(root: Path) -> list[dict[str, Any]]:
    """Return all readers and writers of a clone; none if there is no list, or DVC is writing it."""
    path = root / ".dvc" / "tmp" / "rwlock"
    return entries((read(path) if path.exists() else None) or {})


def entries(held: dict[str, Any]) -> list[dict[str, Any]]:
    """Return all readers and writers."""
    readers = [entry for some in held.get("read", {}).values() for entry in some]
    return [*held.get("write", {}).values(), *readers]


def drop_foreign(path: Path, held: dict[str, Any], root: Path) -> list[str]:
    """Drop listed processes that are no longer DVC; the caller holds the list's lock."""
    pids = {pid for pid in {int(entry["pid"]) for entry in entries(held)} if is_foreign(pid, root)}
    if not pids:
        return []
    write = {name: one for name, one in held.get("write", {}).items() if one["pid"] not in pids}
    readers = {
        name: [one for one in some if one["pid"] not in pids] for name, some in held.get("read", {}).items()
    }
    with atomic_path(path) as temporary:
        temporary.write_text(json.dumps({"write": write, "read": readers}), encoding="utf-8")
    return [f"{path} named process {pid}, which is not a DVC command; dropped it." for pid in sorted(pids)]


def is_foreign(pid: int, root: Path) -> bool:
    """Return whether a process ID is in use, but not by DVC or by a process known to run in the clone."""
    try:
        process = psutil.Process(pid)
        if any("dvc" in part for part in process.cmdline()):
            return False
        with contextlib.suppress(psutil.AccessDenied):  # another user's
            return not is_inside(process, root)
    except psutil.ZombieProcess:  # ended but not reaped: in some containers, it never will be
        return True
    except psutil.NoSuchProcess:
        return False
    return True
