"""Processes that end with the one they work for, even if that one is killed."""

import contextlib
import os
import select
import threading
import time
from collections.abc import Callable
from pathlib import Path

POLL = 0.5  # seconds between two looks at a process where the system cannot wait for it (not Linux)


def is_alive(process: int) -> bool:
    """Tell whether a process with this number is running on this machine.

    One that has ended keeps its number until its parent asks for its status, which the first process of a
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
    """End this process, at once and without clean-up, when its parent ends.

    Args:
        parent: number of the process that has started this one, as it knows it itself: a parent that has
            already died cannot be asked for.
    """
    at_end_of(parent, lambda: os._exit(1))
    if os.getppid() != parent:
        os._exit(1)


def at_end_of(process: int, action: Callable[[], object]) -> None:
    """Call a function, in another thread, when a process has ended; at once if there is none.

    From the return of this call on, another process with the same number is not mistaken for it (on Linux).
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
