"""A stage ends with the DVC command that started it, and cleans up on SIGTERM, SIGHUP and SIGUSR1.

When DVC is killed, it leaves its stage running, which would write to the same files as its rerun. The stage's
worker processes end with it, as the kernel kills them; the stage itself first removes unfinished files.
"""

import os
import select
import signal
import sys
import threading
import time

import psutil

DVC_STAGE = "DVC_STAGE"  # DVC sets it for the commands of a stage
GRACE = 10.0  # seconds to remove unfinished files, or for a training to save, after DVC has ended


def live_with_dvc() -> None:
    """End this process when the DVC command that started it has ended, and at SIGTERM, SIGHUP and SIGUSR1."""
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1):  # Slurm sends the last before a time limit
        if signal.getsignal(number) is signal.SIG_DFL:  # nohup ignores SIGHUP
            signal.signal(number, lambda number, _: sys.exit(128 + number))
    # DVC starts a shell, which may have become the stage; the adopter of orphans is in another process group.
    group = [p for p in psutil.Process().parents() if os.getpgid(p.pid) == os.getpgid(0)]
    # What DVC has started for this stage has the stage's name in DVC_STAGE; the nearest without it is DVC.
    dvc = next((p for p in group if p.environ().get(DVC_STAGE) != os.environ[DVC_STAGE]), None)
    if dvc is None:
        sys.exit("The DVC command that started this stage has ended.")
    threading.Thread(target=end_with, args=(os.pidfd_open(dvc.pid),), daemon=True).start()


def end_with(dvc: int) -> None:
    """Terminate this process when another exits, given its descriptor; kill it if it goes on."""
    select.select([dvc], [], [])
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(GRACE)  # compiled code does not see the signal until it returns
    os.kill(os.getpid(), signal.SIGKILL)
