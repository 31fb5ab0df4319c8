"""Hold DVC's locks, so that no DVC command runs in a clone while its files are repaired."""

import contextlib
import fcntl
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

PATIENCE = 3.0  # seconds to wait for DVC's locks, as DVC itself does
COMMANDS = "lock"  # in .dvc/tmp: held by every DVC command, except while it runs a stage
LIST = "rwlock.lock"  # of the list of readers and writers


@contextlib.contextmanager
def locked(root: Path, *names: str) -> Iterator[None]:
    """Hold some of DVC's locks, given in DVC's order: COMMANDS, LIST.

    Raises:
        ValueError: if DVC does not release them in time.
    """
    deadline = time.monotonic() + PATIENCE
    with contextlib.ExitStack() as stack:
        for name in names:
            stream = stack.enter_context((root / ".dvc" / "tmp" / name).open("a"))
            while True:
                try:
                    fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > deadline:
                        raise at_work(root, f"it holds {stream.name}") from None
                    time.sleep(0.05)
        yield


@contextlib.contextmanager
def idle(root: Path, damaged: Path) -> Iterator[None]:
    """Hold all of DVC's locks; a command that starts in the meantime waits.

    Raises:
        ValueError: if a DVC command is running in the clone. While it runs a stage it holds no lock, so
            processes are searched as well.
    """
    with locked(root, COMMANDS, LIST):
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                is_dvc = "dvc" in {Path(part).name for part in process.cmdline()}
                if is_dvc and is_inside(process, root):
                    raise at_work(root, f"process {process.pid}, while {damaged} is damaged")
        yield


def is_inside(process: psutil.Process, root: Path) -> bool:
    """Return whether a process's working directory is in a clone."""
    return Path(process.cwd()).is_relative_to(root)


def at_work(root: Path, what: str) -> ValueError:
    """Return the error for a clone in use."""
    return ValueError(
        f"a DVC command is running in {root}: {what}. Wanted none: wait for it to finish, or stop it, and "
        "try again."
    )
