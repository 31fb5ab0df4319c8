"""Worker processes end with the program they work for."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import psutil
import pytest

from convs2s import processes
from convs2s.processes import at_end_of, is_alive

ROOT = Path(__file__).parents[1]
# A program that works in a pool of processes and prints their PIDs.
POOL = """
import os, time
from convs2s.text.corpus.parallel import map_chunks
def work(chunk):
    print(os.getpid(), flush=True)
    time.sleep(100)
def make():
    return work
if __name__ == "__main__":
    list(map_chunks(make, range(9), 1, "t", workers=2))
"""
# The same, with processes that share its memory.
FORK = """
import os, time
from convs2s.decode.parallel import run_in_processes
def work(item):
    print(os.getpid(), flush=True)
    time.sleep(100)
list(run_in_processes(work, range(9), 2))
"""
# A program that starts workers in their own sessions, as torchrun does.
LAUNCH = """
import os, subprocess, sys
worker = "import sys, time; from convs2s.processes import end_with_parent as end; end(int(sys.argv[1]))"
command = [sys.executable, "-c", f"{worker}; time.sleep(100)", str(os.getpid())]
workers = [subprocess.Popen(command, start_new_session=True) for _ in range(2)]
print(*[worker.pid for worker in workers], sep="\\n", flush=True)
time.sleep(100)
"""


@pytest.mark.parametrize(
    ("code", "signal"), [(POOL, "kill"), (POOL, "terminate"), (FORK, "kill"), (LAUNCH, "kill")]
)
def test_workers_end_with_their_program(code: str, signal: str, tmp_path: Path) -> None:
    """Left alone, they would wait forever for work and hold memory that the next run needs."""
    (tmp_path / "program.py").write_text(code)
    env, command = {**os.environ, "PYTHONPATH": str(ROOT)}, [sys.executable, str(tmp_path / "program.py")]
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE) as program:
        assert program.stdout is not None
        workers = [psutil.Process(int(program.stdout.readline())) for _ in range(2)]
        getattr(program, signal)()
        left = psutil.wait_procs(workers, timeout=20)[1]
        for process in left:
            process.kill()
    assert left == []


def test_a_zombie_is_not_alive() -> None:
    """A process keeps its PID after its end until its parent asks for its status."""
    with subprocess.Popen(["true"]) as process:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert not is_alive(process.pid)
    assert is_alive(os.getpid())


def test_the_end_of_a_process_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The system reports it if it can; otherwise the process is polled."""
    monkeypatch.setattr(processes, "POLL", 0.01)
    for system in ("Linux", "other"):
        if system == "other":
            monkeypatch.delattr(os, "pidfd_open", raising=False)
        ended = threading.Event()
        with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as cat:
            at_end_of(cat.pid, ended.set)
            assert not ended.wait(0.05)
            assert is_alive(cat.pid)
        assert ended.wait(20)
        assert not is_alive(cat.pid)
        ended.clear()
        at_end_of(cat.pid, ended.set)
        assert ended.wait(20)
