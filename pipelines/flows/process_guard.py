"""Process guard: stops a command and all its descendants once the process that started the guard is gone.

    python -m pipelines.flows.process_guard SECONDS COMMAND ARGUMENT...

Standard input is a pipe whose other end only the flow holds. It closes when the flow is cancelled or dies,
even by kill -9. Then, or when SECONDS have passed, every descendant of the guard gets SIGTERM, and SIGKILL
about a minute later. Prefect alone would leave some running: it kills the flow's process group, but torchrun
starts its workers in sessions of their own.
"""

import contextlib
import ctypes
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence

import psutil

GRACE = 63.0  # seconds from SIGTERM to SIGKILL: enough for a training to save a checkpoint and copy it
POLL = 0.05  # seconds between checks whether the command has ended; a closed pipe is noticed at once
ENDED_BY_GUARD = 128 + signal.SIGTERM
TIMED_OUT = 124  # as of timeout(1)
PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h


def end_descendants(grace: float) -> None:
    """Stop all descendants of this process: SIGTERM first, then SIGKILL after `grace` seconds.

    Processes that start in the meantime are caught in the next round.
    """
    deadline = time.monotonic() + grace
    signalled: set[psutil.Process] = set()
    while left := psutil.Process().children(recursive=True):
        late = time.monotonic() > deadline
        for process in left:
            if late or process not in signalled:
                signalled.add(process)
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.send_signal(signal.SIGKILL if late else signal.SIGTERM)
        psutil.wait_procs(left, timeout=0.1)  # also reaps adopted orphans


def guard(seconds: float, command: Sequence[str]) -> int:
    """Run a command until it ends, stdin closes, or the deadline passes; return a shell's exit status."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # adopt descendants whose own parent dies
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    terminated = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: terminated.set())
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the flow, which closes the pipe
    deadline = time.monotonic() + seconds
    while child.poll() is None:
        flow_is_gone = select.select([0], [], [], POLL)[0]
        if flow_is_gone or terminated.is_set() or time.monotonic() > deadline:
            end_descendants(GRACE)
            return ENDED_BY_GUARD if flow_is_gone or terminated.is_set() else TIMED_OUT
    end_descendants(0.0)  # a process left behind would keep its GPU memory
    return child.returncode if child.returncode >= 0 else 128 - child.returncode


if __name__ == "__main__":
    sys.exit(guard(float(sys.argv[1]), sys.argv[2:]))
