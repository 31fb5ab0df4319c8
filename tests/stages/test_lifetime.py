"""A stage ends with the DVC command that started it."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

ROOT = Path(__file__).parents[2]
# A substitute for DVC: starts a command through a shell and waits for it. SIGHUP has its effect even under
# nohup.
DVC = """
import os, signal, subprocess, sys
signal.signal(signal.SIGHUP, signal.SIG_DFL)
subprocess.run(["/bin/sh", "-c", sys.argv[1]], env={**os.environ, "DVC_STAGE": "s"})
"""
# A substitute for a stage: starts a process and a file, prints both process IDs, and waits.
STAGE = """
import pathlib, subprocess, sys, time
from convs2s.text.corpus.files import atomic_path
from pipelines.stages import _lifetime
_lifetime.GRACE = 0.2
_lifetime.live_with_dvc()
child = subprocess.Popen(["sleep", "100"])
try:
    with atomic_path(pathlib.Path(sys.argv[1])) as temporary:
        temporary.write_text("half")
        print(_lifetime.os.getpid(), child.pid, flush=True)
        while True:
            try:
                time.sleep(100)
            except SystemExit:
                if sys.argv[2] == "gentle":
                    raise
finally:
    child.kill()
"""
Start = Callable[..., tuple[subprocess.Popen[str], list[psutil.Process]]]


@pytest.fixture
def start(tmp_path: Path) -> Start:
    """Return a function that starts DVC with a stage, and returns it with the stage and its child."""
    (tmp_path / "stage.py").write_text(STAGE)

    def start(manner: str, after: str = "") -> tuple[subprocess.Popen[str], list[psutil.Process]]:
        command = f"{sys.executable} {tmp_path / 'stage.py'} {tmp_path / 'out'} {manner}{after}"
        dvc = subprocess.Popen(
            [sys.executable, "-c", DVC, command],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            text=True,
        )
        assert dvc.stdout is not None
        return dvc, [psutil.Process(int(word)) for word in dvc.stdout.readline().split()]

    return start


def ended(processes: list[psutil.Process]) -> bool:
    """Wait until processes have ended, and kill those that do not; return whether all ended."""
    left = psutil.wait_procs(processes, timeout=20)[1]
    for process in left:
        process.kill()
    return not left


@pytest.mark.parametrize(("manner", "after"), [("gentle", ""), ("gentle", "; true"), ("stubborn", "")])
def test_a_stage_ends_with_dvc(manner: str, after: str, start: Start, tmp_path: Path) -> None:
    """It does not matter whether the shell in between becomes the stage or waits for it.

    A stage may be in the middle of a long computation, and is then killed with its children.
    """
    dvc, stage = start(manner, after)
    dvc.kill()
    dvc.wait()
    assert ended(stage)
    assert manner == "stubborn" or [path.name for path in tmp_path.iterdir()] == ["stage.py"]


def test_a_stage_whose_dvc_is_gone_already_does_not_begin(tmp_path: Path) -> None:
    """DVC may be killed while Python starts."""
    code = "from pipelines.stages._lifetime import live_with_dvc; live_with_dvc(); open('begun', 'w')"
    done = subprocess.run(
        [sys.executable, "-c", DVC, f'(sleep 0.05; {sys.executable} -c "{code}" 2>&1) &'],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert done.stdout == "The DVC command that started this stage has ended.\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_leaves_no_file(number: signal.Signals, start: Start, tmp_path: Path) -> None:
    """Like Ctrl-C: unfinished output can be large."""
    dvc, stage = start("gentle")
    stage[0].send_signal(number)
    assert ended(stage)
    dvc.wait()
    assert [path.name for path in tmp_path.iterdir()] == ["stage.py"]
