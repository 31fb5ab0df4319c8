"""Flows that train until they are stopped, and the processes they leave.

All processes count whose working directory is the test's repository.
"""

import contextlib
from collections.abc import Callable
from pathlib import Path

import psutil

from tests.flows import toy
from tests.flows.server import FlowProcess, Server, soon


def processes(repo: Path) -> list[str]:
    """Return the command lines of all processes in a repository."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if Path(process.cwd()) == repo and process.status() != psutil.STATUS_ZOMBIE:
                found.append(" ".join(process.cmdline()))
    return found


def training(repo: Path) -> bool:
    """Return whether both trainings are running."""
    return {note[0] for note in toy.notes(repo)} >= {"train@1", "train@2"}


def started(server: Server, repo: Path) -> FlowProcess:
    """Start a flow and wait until it is training."""
    toy.behave(repo, train_1={"seconds": 90}, train_2={"seconds": 90})
    flow = server.start_flow(repo)
    assert soon(lambda: training(repo)), (server.home / "flow.log").read_text()[-2000:]
    assert len([line for line in processes(repo) if "toy.py data/trained" in line]) >= 2
    return flow


def gone(repo: Path, keep: Callable[[str], bool] = lambda _: False) -> None:
    """Check that no process is left after ten seconds."""
    assert soon(lambda: not [p for p in processes(repo) if not keep(p)], 10), processes(repo)
