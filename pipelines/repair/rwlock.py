"""DVC's list of who reads and writes which path, .dvc/tmp/rwlock.

DVC writes it in place. A kill in the middle leaves it empty or cut, and then every later command fails.
Processes that have died DVC drops by itself, unless another program has got the number since: then it waits
for that one.
"""

import contextlib
import json
from pathlib import Path
from typing import Any

import psutil

from convs2s.text.corpus.files import atomic_path
from pipelines.repair.locks import LIST, idle, is_inside, locked


def repair_rwlock(root: Path) -> list[str]:
    """Remove the list if it is unreadable, else drop programs that are not DVC; return what was done.

    Raises:
        ValueError: if the list is unreadable and a DVC command is at work, or DVC does not release a lock.
    """
    path = root / ".dvc" / "tmp" / "rwlock"
    if not path.exists():
        return []
    with locked(root, LIST):  # as its writers do, so what is damaged now is nobody's unfinished work
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


def entries(held: dict[str, Any]) -> list[dict[str, Any]]:
    """Return all readers and writers."""
    readers = [entry for some in held.get("read", {}).values() for entry in some]
    return [*held.get("write", {}).values(), *readers]


def drop_foreign(path: Path, held: dict[str, Any], root: Path) -> list[str]:
    """Drop listed processes that are alive and yet not DVC's; the caller holds the lock of the list."""
    pids = {pid for pid in {int(entry["pid"]) for entry in entries(held)} if is_foreign(pid, root)}
    if not pids:
        return []
    write = {name: one for name, one in held.get("write", {}).items() if one["pid"] not in pids}
    readers = {
        name: [one for one in some if one["pid"] not in pids] for name, some in held.get("read", {}).items()
    }
    with atomic_path(path) as temporary:
        temporary.write_text(json.dumps({"write": write, "read": readers}), encoding="utf-8")
    return [f"{path} named process {pid}, which is another program now; dropped it." for pid in sorted(pids)]


def is_foreign(pid: int, root: Path) -> bool:
    """Tell whether a process is alive, and neither DVC nor known to work in the clone."""
    try:
        process = psutil.Process(pid)
        if any("dvc" in part for part in process.cmdline()):
            return False
        with contextlib.suppress(psutil.AccessDenied):  # another user's
            return not is_inside(process, root)
    except psutil.NoSuchProcess:
        return False
    return True
