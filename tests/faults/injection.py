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
Action = Callable[[Path], None]


def operations(action: Callable[[int, Path], None], within: Path) -> None:
    """Call an action before each operation of this process in a folder, with its number (from 1) and path."""
    count, busy = 0, False

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal count, busy
        if busy or not (event in CHANGES or (event == "open" and is_to_write(arguments))):
            return
        busy = True
        try:
            path = Path(os.path.abspath(os.fsdecode(arguments[0])))  # type: ignore[arg-type] # noqa: PTH100
            if path.is_relative_to(within):
                count += 1
                action(count, path)
        finally:
            busy = False

    sys.addaudithook(hook)


def is_to_write(arguments: tuple[object, ...]) -> bool:
    """Return whether the arguments of an `open` event ask for writing."""
    path, _, flags = arguments
    return isinstance(path, str | bytes | os.PathLike) and isinstance(flags, int) and bool(flags & TO_WRITE)


def record(log: Path, within: Path) -> Hook:
    """Return a hook that writes a line for each operation of a process to log/PROCESS."""

    def note(_: int, path: Path) -> None:
        with (log / os.environ.get("DVC_STAGE", "dvc")).open("a") as stream:
            stream.write(f"{path.relative_to(within)}\n")

    return lambda: operations(note, within)


def at(number: int, action: Action, within: Path) -> Hook:
    """Return a hook that calls an action before the n-th operation."""
    return lambda: operations(lambda count, path: action(path) if count == number else None, within)


def on(file: Path, action: Action, within: Path) -> Hook:
    """Return a hook that calls an action before each operation on a file."""
    return lambda: operations(lambda _, path: action(path) if path == file else None, within)


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


def fail(error: Exception) -> Action:
    """Return an action that fails, as the system does for lack of space, or Python for lack of memory."""

    def action(_: Path) -> None:
        raise error

    return action


def cut_and_die(keep: float) -> Action:
    """Return an action that keeps a share of a file, as after a kill in mid-write, and kills everything."""

    def action(path: Path) -> None:
        content = path.read_bytes() if path.exists() else b""
        path.write_bytes(content[: int(keep * len(content))])
        os.killpg(os.getpgid(0), signal.SIGKILL)

    return action


def limit_file_size(size: int, dies: bool) -> Hook:
    """Return a hook that makes writes beyond a size fail, or kill the process at exactly that byte."""

    def hook() -> None:
        if dies:
            signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

    return hook
