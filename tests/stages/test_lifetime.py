"""A stage ends with the DVC command that started it."""

import os
import signal
import subprocess
import sys
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
# A substitute for a stage: starts a worker and a file, prints both process IDs, and waits.
STAGE = """
import multiprocessing, os, pathlib, sys, time
from convs2s.base.files import atomic_path
from convs2s.base.parallel import end_with_parent
from pipelines.stages import _lifetime
_lifetime.GRACE = 0.2
_lifetime.live_with_dvc()
def work(parent):
    end_with_parent(parent)
    print(parent, os.getpid(), flush=True)
    time.sleep(100)
with atomic_path(pathlib.Path(sys.argv[1])) as temporary:
    temporary.write_text("half")
    context = multiprocessing.get_context("fork")
    context.Process(target=work, args=(os.getpid(),), daemon=True).start()
    while True:
        try:
            time.sleep(100)
        except SystemExit:
            if sys.argv[2] == "gentle":
                raise
"""


def start_dvc(command: str, folder: Path) -> subprocess.Popen[str]:
    """Start DVC with a shell command in a folder."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    program = [sys.executable, "-c", DVC, command]
    return subprocess.Popen(program, env=environment, cwd=folder, stdout=subprocess.PIPE, text=True)


def runs(process: psutil.Process) -> bool:
    """Return whether a process runs; init may let some time pass before it takes notice of an ended one."""
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.mark.parametrize(
    ("manner", "after", "number"),
    [
        ("gentle", "", None),
        ("gentle", "; true", None),
        ("stubborn", "", None),
        ("gentle", "", signal.SIGTERM),
        ("gentle", "", signal.SIGHUP),
        ("gentle", "", signal.SIGUSR1),
    ],
)
def test_a_stage_ends_with_dvc_or_by_a_signal(
    manner: str, after: str, number: signal.Signals | None, tmp_path: Path
) -> None:
    """It does not matter whether the shell in between becomes the stage or waits for it.

    A stage may be in the middle of a long computation, and is then killed with its children. Otherwise it
    leaves no unfinished output, which can be large.
    """
    (tmp_path / "stage.py").write_text(STAGE)
    dvc = start_dvc(f"{sys.executable} stage.py out {manner}{after}", tmp_path)
    assert dvc.stdout is not None
    stage = [psutil.Process(int(word)) for word in dvc.stdout.readline().split()]
    if number is None:
        dvc.kill()
    else:
        stage[0].send_signal(number)
    left = [process for process in psutil.wait_procs(stage, timeout=20)[1] if runs(process)]
    for process in left:
        process.kill()
    dvc.wait()
    assert not left
    assert manner == "stubborn" or [path.name for path in tmp_path.iterdir()] == ["stage.py"]


def test_a_stage_whose_dvc_is_gone_already_does_not_begin(tmp_path: Path) -> None:
    """DVC may be killed while Python starts."""
    code = "from pipelines.stages._lifetime import live_with_dvc; live_with_dvc(); open('begun', 'w')"
    dvc = start_dvc(f'(sleep 0.05; {sys.executable} -c "{code}" 2>&1) &', tmp_path)
    assert dvc.communicate()[0] == "The DVC command that started this stage has ended.\n"
    assert list(tmp_path.iterdir()) == []
