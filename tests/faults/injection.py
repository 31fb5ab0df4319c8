"""Faults at chosen operations of a process: the n-th time it writes to, renames, removes or makes a file.

Python reports each such operation to an audit hook before it happens, so nothing depends on timing.
"""

import os
import resource
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.truncate"}
TO_WRITE = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
Hook = Callable[[], object]
Action = Callable[[Path], object]


def operations(action: Callable[[int, Path], object], within: Path) -> Hook:
    """Return a hook that calls an action before each operation in a folder, with its number and path."""
    count, busy = 0, False

    def before(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal count, busy
        writes = event == "open" and isinstance(arguments[2], int) and arguments[2] & TO_WRITE
        if busy or not (event in CHANGES or writes) or isinstance(arguments[0], int):
            return
        busy = True
        try:
            path = Path(os.path.abspath(os.fsdecode(arguments[0])))  # type: ignore[arg-type] # noqa: PTH100
            if path.is_relative_to(within):
                count += 1
                action(count, path)
        finally:
            busy = False

    return lambda: sys.addaudithook(before)


def send(number: int, target: str) -> Action:
    """Return an action that sends a signal to this process (stage), its parent (dvc) or all (group).

    A stage whose DVC is killed then takes a long time, so that only its watch over DVC can end it.
    """

    def action(_: Path) -> None:
        if target == "group":
            os.killpg(os.getpgid(0), number)
        else:
            os.kill(os.getpid() if target == "stage" else os.getppid(), number)
        if target == "dvc" and number == signal.SIGKILL:
            time.sleep(60)

    return action


def cut_and_die(path: Path) -> None:
    """Keep the first half of a file, as after a kill in mid-write, and kill everything."""
    content = path.read_bytes() if path.exists() else b""
    path.write_bytes(content[: len(content) // 2])
    os.killpg(os.getpgid(0), signal.SIGKILL)


def die_beyond(size: int) -> Hook:
    """Return a hook after which a process dies when it writes beyond a file's size, at exactly that byte."""

    def hook() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

    return hook
