"""Process guard: a command and all it starts end when whoever started the guard is gone.

    python -m pipelines.flows.guard COMMAND ARGUMENT...

Standard input is a pipe whose other end only the flow holds. It closes when the flow closes it (cancelled,
deadline passed) and when the flow dies, kill -9 included. Then every process below the guard gets SIGTERM,
and SIGKILL 3 s later. Prefect alone leaves them running: it kills the process group of the flow, but torchrun
starts its workers in sessions of their own.
"""

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence

import psutil

GRACE = 3.0
"""Seconds between SIGTERM and SIGKILL: enough for a training to end its write of a checkpoint."""
ENDED_BY_GUARD = 128 + signal.SIGTERM
PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent dies, where the system (Linux) can do so."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def end_descendants(grace: float = GRACE) -> None:
    """End all processes below this one: SIGTERM, and SIGKILL for what is left after `grace` seconds.

    Those that start while this goes on are met by the next round.
    """
    deadline = time.monotonic() + grace
    told: set[psutil.Process] = set()
    while left := living_descendants():
        late = time.monotonic() > deadline
        for process in left:
            if late or process not in told:
                told.add(process)
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.send_signal(signal.SIGKILL if late else signal.SIGTERM)
        psutil.wait_procs(left, timeout=0.1)


def living_descendants() -> list[psutil.Process]:
    """Return the processes below this one that still run; collect those that have ended."""
    left = []
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            if process.status() != psutil.STATUS_ZOMBIE:
                left.append(process)
            elif process.ppid() == os.getpid():
                with contextlib.suppress(ChildProcessError):  # subprocess may have been quicker
                    os.waitpid(process.pid, os.WNOHANG)
    return left


def guard(command: Sequence[str]) -> int:
    """Run a command until it ends or standard input closes; return its status, as a shell would give it."""
    adopt_orphans()
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    ended, tell = os.pipe()

    def wait() -> None:
        child.wait()
        os.close(tell)

    threading.Thread(target=wait, daemon=True).start()
    told, tell_too = os.pipe()
    signal.signal(signal.SIGTERM, lambda *_: os.write(tell_too, b"."))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the flow, which closes the pipe
    over = ended in select.select([0, ended, told], [], [])[0]
    end_descendants(GRACE if not over else 0.0)  # what a command leaves behind would hold its GPU
    if not over:
        return ENDED_BY_GUARD
    return child.returncode if child.returncode >= 0 else 128 - child.returncode


if __name__ == "__main__":
    sys.exit(guard(sys.argv[1:]))
