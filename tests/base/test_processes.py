"""Processes: workers that end with their program, programs that the pipelines run, other clones."""

import multiprocessing
import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import psutil
import pytest

from convs2s.base.parallel import map_chunks
from pipelines.shell import CommandFailed, run

ROOT = Path(__file__).parents[2]


def report(folder: Path, item: object) -> None:
    """Work for a long time, in a process whose id is noted."""
    (folder / str(os.getpid())).touch()
    time.sleep(100)


def make_report(folder: Path) -> Callable[[object], None]:
    return partial(report, folder)


def use_pool(folder: Path) -> None:
    list(map_chunks(partial(make_report, folder), range(9), 1, "t", workers=2))


def share_memory(folder: Path) -> None:
    from convs2s.decode.parallel import run_in_processes  # noqa: PLC0415  # imports torch

    list(run_in_processes(partial(report, folder), range(9), 2))


@pytest.mark.parametrize("program", [use_pool, share_memory])
def test_workers_end_with_their_program(program: Callable[[Path], None], tmp_path: Path) -> None:
    """Left alone, they would wait forever for work and hold memory that the next run needs."""
    running = multiprocessing.get_context("fork").Process(target=program, args=(tmp_path,))
    running.start()
    while len(list(tmp_path.iterdir())) < 2 and running.is_alive():
        time.sleep(0.01)
    workers = [psutil.Process(int(path.name)) for path in tmp_path.iterdir()]
    running.kill()
    running.join()
    alive = psutil.wait_procs(workers, timeout=20)[1]
    for worker in alive:
        worker.kill()
    assert len(workers) == 2
    assert alive == []


def test_a_program_returns_what_it_prints_or_fails_with_its_command_and_status(tmp_path: Path) -> None:
    """A leading space, as in `git status --porcelain`, is kept; a program may fail silently."""
    (tmp_path / "here").touch()
    assert run(sys.executable, "-c", "import os; print(' ', *os.listdir())", cwd=tmp_path) == "  here"
    for code, message in (("1 / 0", "with status 1: .*division by zero$"), ("exit(3)", "with status 3$")):
        with pytest.raises(CommandFailed, match=rf"(?s)-c .* failed in .* {message}"):
            run(sys.executable, "-c", code, cwd=tmp_path)


@pytest.mark.parametrize("module", ["stages", "check", "repair", "report", "flows.machine"])
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


def test_a_flow_run_refuses_the_library_of_another_clone(tmp_path: Path) -> None:
    """It begins in an empty folder, so the environment decides where both packages come from."""
    (tmp_path / "convs2s").mkdir()
    (tmp_path / "convs2s" / "__init__.py").touch()
    env = {**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT}"}
    command = [sys.executable, "-P", "-c", "import pipelines.flows.reproduce"]
    (tmp_path / "run").mkdir()
    done = subprocess.run(command, cwd=tmp_path / "run", env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith(
        f"{ROOT}: expected convs2s of this clone, found {tmp_path / 'convs2s'}. The"
    )
