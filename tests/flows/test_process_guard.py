"""The process guard: no process of a command outlives the flow."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.flows.server import soon

# A child in a session of its own that ignores SIGTERM, and a grandchild whose parent has gone.
FAMILY = """
import os, signal, subprocess, sys, time
mark, out = sys.argv[1], open(sys.argv[2], "w")
loop = "import signal as s, time; s.signal(s.SIGTERM, s.SIG_IGN); print(1, flush=True); time.sleep(60)"
child = subprocess.Popen(
    [sys.executable, "-c", loop, mark], start_new_session=True, stdout=subprocess.PIPE)
child.stdout.readline()
sleep = "import time; time.sleep(60)"
orphan = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', '{sleep}', '{mark}'])"
subprocess.run([sys.executable, "-c", orphan, mark], start_new_session=True)
out.write("up"); out.close()
time.sleep(60)
"""
# It waits 0.2 s between SIGTERM and SIGKILL.
HASTY = (
    "import sys; from pipelines.flows import process_guard; process_guard.GRACE = 0.2; "
    "sys.exit(process_guard.guard(60, sys.argv[1:]))"
)


def living(mark: str) -> list[psutil.Process]:
    """Return the processes with this mark in their command line, except the guard itself and zombies."""
    processes = psutil.process_iter(["cmdline", "status"])
    living = [process for process in processes if process.info["status"] != psutil.STATUS_ZOMBIE]
    return [p for p in living if mark in (p.info["cmdline"] or []) and HASTY not in p.info["cmdline"]]


@pytest.mark.parametrize(("cause", "status"), [("pipe", 15), ("terminated", 15), ("child", 9)])
def test_all_processes_end(cause: str, status: int, tmp_path: Path) -> None:
    """None may be left, whether a flow is canceled, killed or crashes, or the machine shuts down.

    A crashed flow's workers would go on holding a GPU.
    """
    mark = f"mark-{tmp_path.name}-{os.getpid()}"
    up = tmp_path / "up"
    command = [sys.executable, "-c", HASTY, sys.executable, "-c", FAMILY, mark, str(up)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)
    try:
        assert soon(lambda: up.exists() and up.read_text() == "up", 10)
        assert len(living(mark)) == 3
        assert process.stdin is not None
        if cause == "pipe":
            process.stdin.close()
        elif cause == "terminated":
            process.terminate()
        else:
            next(one for one in living(mark) if FAMILY in one.cmdline()).kill()
        assert process.wait(10) == 128 + signal.Signals(status)
        assert living(mark) == []
    finally:
        for left in living(mark):
            left.kill()
        process.kill()
        process.wait()
