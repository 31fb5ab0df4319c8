"""A stage ends with the DVC command that started it, and cleans up on SIGTERM and SIGHUP.

When DVC is killed, it leaves its stage running. That stage would write to the same files as its rerun, and
hold memory and GPUs.
"""

import contextlib
import os
import signal
import sys
import time
from types import FrameType

import psutil

from convs2s.base.processes import at_end_of

MARK = "DVC_STAGE"  # DVC sets it for the commands of a stage
GRACE = 3.0  # seconds for the stage to remove unfinished files after DVC has ended
SAVING = 60.0  # seconds for a training to save, and to copy the checkpoint elsewhere
INIT = 1  # process that adopts orphans


def live_with_dvc() -> None:
    """End this process and all its children when the DVC command that started it has ended.

    From now on, SIGTERM and SIGHUP end the stage with an exception, so that it removes unfinished files.
    """
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:  # nohup ignores SIGHUP
            signal.signal(number, exit_on_signal)
    dvc = find_dvc()
    if dvc is not None:
        at_end_of(dvc.pid, end)
    if dvc is None or find_dvc() != dvc:
        sys.exit("The DVC command that started this stage has ended.")


def find_dvc() -> psutil.Process | None:
    """Return the DVC command that started this stage; None if it has ended.

    There may be a shell in between, which has DVC's mark in its environment, as the stage does. The process
    that adopts orphans, however, is in another process group, unless it is the first process of a container,
    which can be DVC itself or a program that uses its Python API.
    """
    try:
        above = psutil.Process().parent()
        while above is not None and has_mark(above):
            above = above.parent()
        if above is None or os.getpgid(above.pid) != os.getpgid(0):
            return None
        if above.pid == INIT and not any("dvc" in part or "python" in part for part in above.cmdline()):
            return None
        return above
    except (psutil.NoSuchProcess, ProcessLookupError):
        return None


def has_mark(process: psutil.Process) -> bool:
    """Return whether DVC started a process for the same stage."""
    try:
        return process.environ().get(MARK) == os.environ[MARK]
    except psutil.AccessDenied:
        return False


def exit_on_signal(number: int, frame: FrameType | None) -> None:
    """Handle a signal: exit with all cleanup; a second one kills at once."""
    signal.signal(number, signal.SIG_DFL)
    raise SystemExit(128 + number)


def end() -> None:
    """Terminate this process; kill it and all its children if it is still running after a while."""
    with contextlib.suppress(OSError):  # the terminal may be closed as well
        print("The DVC command that started this stage has ended; stopping the stage.", file=sys.stderr)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(SAVING if sys.argv[1:2] == ["train"] else GRACE)
    this = psutil.Process()
    for process in [*this.children(recursive=True), this]:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
