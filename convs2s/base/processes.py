"""Processes that end when the process they work for does, even if it is killed (Linux)."""

import ctypes
import os
import signal

PR_SET_PDEATHSIG = 1  # of <linux/prctl.h>


def end_with_parent(parent: int) -> None:
    """Have the kernel kill this process when its parent exits, or the thread of it that started this process.

    Args:
        parent: id of the parent, taken in the parent itself: if it has already died, `os.getppid` returns
            another process.
    """
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
