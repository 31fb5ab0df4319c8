"""Processes: workers that end with their program, programs that the pipelines run."""

import contextlib
import multiprocessing
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import psutil
import pytest

from convs2s.base.parallel import map_chunks
from pipelines.shell import CommandFailed, run


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


def works(process: psutil.Process) -> bool:
    """Return whether a process has not ended; who adopts orphans may leave them as zombies for a while."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return process.status() != psutil.STATUS_ZOMBIE
    return False


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
    assert len(workers) == 2
    deadline = time.monotonic() + 20
    while (working := [*filter(works, workers)]) and time.monotonic() < deadline:
        time.sleep(0.01)
    for worker in working:
        worker.kill()
    assert working == []


def test_a_program_returns_what_it_prints(tmp_path: Path) -> None:
    """A leading space is kept: in `git status --porcelain`, it has a meaning."""
    (tmp_path / "here").touch()
    assert run(sys.executable, "-c", "import os; print(' ', *os.listdir())", cwd=tmp_path) == "  here"


@pytest.mark.parametrize(
    ("code", "message"),
    [("1 / 0", "with status 1: .*division by zero$"), ("exit(3)", "with status 3$")],
)
def test_a_program_that_fails_is_named_with_its_status(code: str, message: str, tmp_path: Path) -> None:
    """Its last words follow, if it has any: a program may fail silently."""
    with pytest.raises(CommandFailed, match=rf"(?s)-c .* failed in .* {message}"):
        run(sys.executable, "-c", code, cwd=tmp_path)
