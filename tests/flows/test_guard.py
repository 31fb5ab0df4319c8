"""The process guard: no process of a command outlives the flow."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

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


def living(mark: str) -> list[psutil.Process]:
    """Return the processes with this mark in their command line, except the guard itself and zombies."""
    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        line = process.info["cmdline"] or []
        if mark in line and HASTE not in line and process.info["status"] != "zombie":
            found.append(process)
    return found


GUARD = [sys.executable, "-m", "pipelines.flows.guard", "60", sys.executable, "-c"]
"""Followed by a program in Python and its arguments: that program under guard, for at most 60 seconds."""
HASTE = (
    "import sys; from pipelines.flows import guard as g; g.GRACE = 0.5; sys.exit(g.guard(60, sys.argv[1:]))"
)
HASTY_GUARD = [sys.executable, "-c", HASTE, sys.executable, "-c"]
"""The same, but it waits half a second between SIGTERM and SIGKILL."""


def soon(condition: Callable[[], bool], seconds: float = 10.0) -> bool:
    """Wait for a condition, up to a time limit."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.05)
    return condition()


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """A guard over a family of processes, once all of them are running."""
    mark, up = f"mark-{tmp_path.name}-{os.getpid()}", tmp_path / "up"
    command = [*HASTY_GUARD, FAMILY, mark, str(up)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)
    assert soon(lambda: up.exists() and up.read_text() == "up")
    assert len(living(mark)) == 3
    yield process, mark
    for left in living(mark):
        left.kill()
    process.kill()
    process.wait()


def test_all_end_when_the_pipe_closes(guarded: tuple[subprocess.Popen[bytes], str]) -> None:
    """The flow closes it on cancellation; the system closes it after kill -9."""
    process, mark = guarded
    assert process.stdin is not None
    process.stdin.close()
    assert process.wait(10) == 128 + signal.SIGTERM
    assert living(mark) == []


def test_all_end_when_the_guard_gets_sigterm(guarded: tuple[subprocess.Popen[bytes], str]) -> None:
    """A system that shuts down sends SIGTERM to every process."""
    process, mark = guarded
    process.terminate()
    assert process.wait(10) == 128 + signal.SIGTERM
    assert living(mark) == []


def test_processes_left_behind_by_a_command_end_with_it(guarded: tuple[subprocess.Popen[bytes], str]) -> None:
    """Otherwise a crashed training's workers would keep their GPU."""
    process, mark = guarded
    child = next(p for p in living(mark) if p.ppid() == process.pid and FAMILY in p.cmdline())
    child.kill()
    assert process.wait(10) == 128 + signal.SIGKILL
    assert living(mark) == []


@pytest.mark.parametrize("status", [0, 3])
def test_the_exit_status_is_the_commands(status: int) -> None:
    """The flow must learn that DVC has failed."""
    command = [*GUARD, f"raise SystemExit({status})"]
    assert subprocess.Popen(command, stdin=subprocess.PIPE).wait(30) == status


def test_output_passes_through() -> None:
    """The flow reads it line by line."""
    command = [*GUARD, "print('seen')"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None and process.stdin is not None
    assert process.stdout.read() == b"seen\n"
    process.stdin.close()
    assert process.wait(10) == 0
