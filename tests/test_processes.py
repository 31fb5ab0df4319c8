"""Processes: workers that end with their program, programs that the pipelines run, other clones."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import psutil
import pytest

from convs2s import processes
from convs2s.processes import at_end_of, is_alive
from pipelines.shell import CommandFailed, run

ROOT = Path(__file__).parents[1]
WORK = """
import os, time
def work(item):
    print(os.getpid(), flush=True)
    time.sleep(100)
def make():
    return work
"""
PROGRAMS = {
    "pool": f"""
{WORK}
from convs2s.text.corpus.parallel import map_chunks
if __name__ == "__main__":
    list(map_chunks(make, range(9), 1, "t", workers=2))
""",
    "processes that share memory": f"""
{WORK}
from convs2s.decode.parallel import run_in_processes
list(run_in_processes(work, range(9), 2))
""",
    "workers in their own sessions, as of torchrun": """
import os, subprocess, sys, time
worker = "import sys, time; from convs2s.processes import end_with_parent as end; end(int(sys.argv[1]))"
command = [sys.executable, "-c", f"{worker}; time.sleep(100)", str(os.getpid())]
workers = [subprocess.Popen(command, start_new_session=True) for _ in range(2)]
print(*[worker.pid for worker in workers], sep="\\n", flush=True)
time.sleep(100)
""",
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_workers_end_with_their_program(program: str, tmp_path: Path) -> None:
    """Left alone, they would wait forever for work and hold memory that the next run needs."""
    (tmp_path / "program.py").write_text(PROGRAMS[program])
    env, command = {**os.environ, "PYTHONPATH": str(ROOT)}, [sys.executable, str(tmp_path / "program.py")]
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE) as running:
        assert running.stdout is not None
        workers = [psutil.Process(int(running.stdout.readline())) for _ in range(2)]
        running.kill()
        left = psutil.wait_procs(workers, timeout=20)[1]
        for process in left:
            process.kill()
    assert left == []


@pytest.mark.parametrize("system", ["Linux", "other"])
def test_the_end_of_a_process_is_noticed(system: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system reports it if it can; otherwise the process is polled.

    A process keeps its id after its end until its parent asks for its status.
    """
    monkeypatch.setattr(processes, "POLL", 0.01)
    if system == "other":
        monkeypatch.delattr(os, "pidfd_open", raising=False)
    ended = threading.Event()
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as cat:
        at_end_of(cat.pid, ended.set)
        assert not ended.wait(0.05)
        assert is_alive(cat.pid)
        assert cat.stdin is not None
        cat.stdin.close()
        assert ended.wait(20)
        os.waitid(os.P_PID, cat.pid, os.WEXITED | os.WNOWAIT)
        assert not is_alive(cat.pid)
    ended.clear()
    at_end_of(cat.pid, ended.set)
    assert ended.wait(20)


def test_a_program_returns_what_it_prints_or_fails_with_its_command_and_status(tmp_path: Path) -> None:
    """A leading space, as in `git status --porcelain`, is kept; a program may fail silently."""
    (tmp_path / "here").touch()
    assert run(sys.executable, "-c", "import os; print(' ', *os.listdir())", cwd=tmp_path) == "  here"
    for code, message in (("1 / 0", "with status 1: .*division by zero$"), ("exit(3)", "with status 3$")):
        with pytest.raises(CommandFailed, match=rf"(?s)-c .* failed in .* {message}"):
            run(sys.executable, "-c", code, cwd=tmp_path)


@pytest.mark.parametrize("module", ["stages", "check", "repair", "report.scores", "flows.machine"])
@pytest.mark.parametrize("foreign", ["convs2s", "pipelines"])
def test_every_entrance_refuses_the_code_of_another_clone(module: str, foreign: str, tmp_path: Path) -> None:
    """An editable install in a shared virtual environment would otherwise win."""
    for name in ("convs2s", "pipelines"):
        if name == foreign:
            (tmp_path / name).mkdir()
            (tmp_path / name / "__init__.py").touch()
        else:
            (tmp_path / name).symlink_to(ROOT / name)
    command = [sys.executable, "-P", "-m", f"pipelines.{module}", "--help"]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    message = f"{tmp_path}: expected {foreign} of this clone, found {ROOT / foreign}. The"
    assert done.stderr.startswith(message)
