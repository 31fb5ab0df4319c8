"""Processes that exit when the process they work for does, even if it is killed."""

import contextlib
import os
import select
import threading
import time
from collections.abc import Callable
from pathlib import Path

POLL = 0.5  # seconds between checks of a process, where the system cannot wait for it (not Linux)


def is_alive(process: int) -> bool:
    """Return whether a process with this id is running on this machine.

    A process that has exited keeps its id until its parent reads its exit status, which process 1 of a
    container may never do (on Linux).
    """
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    with contextlib.suppress(OSError):
        return Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(") ")[2][0] not in "ZX"
    return True


def end_with_parent(parent: int) -> None:
    """Exit, at once and without clean-up, when this process's parent exits.

    Args:
        parent: id of the parent, taken in the parent itself: if it has already died, `os.getppid` would
            return another process.
    """
    at_end_of(parent, lambda: os._exit(1))
    if os.getppid() != parent:
        os._exit(1)


def at_end_of(process: int, action: Callable[[], object]) -> None:
    """Call a function, in another thread, when a process exits; at once if there is no such process.

    Once this call has returned, a new process with the same id is not mistaken for the old one (on Linux).
    """
    try:
        descriptor = os.pidfd_open(process)
    except (AttributeError, OSError):  # not Linux, or an old kernel, or no such process
        descriptor = None

    def wait() -> None:
        if descriptor is None:
            while is_alive(process):
                time.sleep(POLL)
        else:
            poll = select.poll()
            poll.register(descriptor, select.POLLIN)
            poll.poll()
            os.close(descriptor)
        action()

    threading.Thread(target=wait, name=f"end of {process}", daemon=True).start()
