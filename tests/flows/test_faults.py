"""Cancel, kill -9 and a server that restarts: no process stays behind, and the next run completes.

Counted are all processes whose working folder is the test's repository.
"""

import contextlib
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tests.flows import toy
from tests.flows.server import FlowProcess, Server, end, soon

pytestmark = pytest.mark.flows


def processes(repo: Path) -> list[str]:
    """Return the command lines of all processes that work in a repository."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if Path(process.cwd()) == repo and process.status() != psutil.STATUS_ZOMBIE:
                found.append(" ".join(process.cmdline()))
    return found


def training(repo: Path) -> bool:
    """Tell whether both trainings are under way."""
    return {note[0] for note in toy.notes(repo)} >= {"train@1", "train@2"}


def started(server: Server, repo: Path) -> FlowProcess:
    """Start a flow and wait until it trains."""
    toy.behave(repo, train_1={"seconds": 90}, train_2={"seconds": 90})
    flow = server.start_flow(repo)
    assert soon(lambda: training(repo)), (server.home / "flow.log").read_text()[-2000:]
    assert len([line for line in processes(repo) if "toy.py data/trained" in line]) >= 2
    return flow


def completes(server: Server, repo: Path) -> None:
    """The next run does what is left, trainings from their checkpoints."""
    toy.behave(repo)
    run = server.run_flow(repo)
    states = server.states(run)
    assert server.flow_run(run)["state_type"] == "COMPLETED", server.flow_run(run)["state"]
    assert (states["download"], states["train@1"], states["train@2"]) == ("Unchanged", "Executed", "Executed")
    assert [note[1] for note in toy.notes(repo) if note[0] == "train@1"][:2] == ["start 0", "start 1"]
    assert toy.dvc(repo, "status") == "Data and pipelines are up to date."


def gone(repo: Path, keep: Callable[[str], bool] = lambda _: False) -> None:
    """No process is left within ten seconds."""
    assert soon(lambda: not [p for p in processes(repo) if not keep(p)], 10), processes(repo)


def test_cancel_during_training(server: Server, repo: Path) -> None:
    """The button in the UI, on a run that a worker has started."""
    server.deploy(repo)
    toy.behave(repo, train_1={"seconds": 90}, train_2={"seconds": 90})
    worker = server.worker(repo, "gpu")
    try:
        run = server.trigger("reproduce/gpu")
        assert soon(lambda: training(repo)), (server.home / "worker.log").read_text()[-2000:]
        server.post(f"flow_runs/{run}/set_state", {"state": {"type": "CANCELLING"}})
        gone(repo, lambda line: "prefect worker" in line or "prefect.engine" in line)
        assert soon(lambda: server.flow_run(run)["state_type"] == "CANCELLED", 40), server.flow_run(run)[
            "state"
        ]
    finally:
        end(worker.pid)
    gone(repo)
    completes(server, repo)


def test_kill_of_the_flow(server: Server, repo: Path) -> None:
    """The kernel may do it when memory is short."""
    flow = started(server, repo)
    flow.process.kill()
    gone(repo)
    completes(server, repo)


def test_kill_of_the_worker(server: Server, repo: Path) -> None:
    """No other worker would take its flow over, so the flow sees it and ends."""
    server.deploy(repo)
    toy.behave(repo, train_1={"seconds": 90}, train_2={"seconds": 90})
    worker = server.worker(repo, "gpu")
    run = server.trigger("reproduce/gpu")
    assert soon(lambda: training(repo)), (server.home / "worker.log").read_text()[-2000:]
    worker.kill()
    worker.wait()
    gone(repo)
    state = server.flow_run(run)["state"]
    assert state["type"] == "CRASHED"
    assert "the worker that had started this run is gone" in state["message"]
    assert "2 executed, 0 unchanged, 0 cached, 2 failed, 1 not run" in state["message"]
    completes(server, repo)


def test_a_killed_flow_is_marked_crashed(server: Server, repo: Path) -> None:
    """Nobody is left to say so but the automation that the deployment sets up, after 90 s of silence."""
    server.deploy(repo)
    flow = started(server, repo)
    server.env["PREFECT_FLOWS_HEARTBEAT_FREQUENCY"] = "30"
    run = flow.id()
    flow.process.kill()
    assert server.flow_run(run)["state_type"] == "RUNNING"
    assert soon(lambda: server.flow_run(run)["state_type"] == "CRASHED", 150), server.flow_run(run)["state"]
    assert "No heartbeat for 90 s" in server.flow_run(run)["state"]["message"]


def test_a_server_that_restarts_during_a_run(tmp_path: Path, repo: Path) -> None:
    """Stages go on, and the run ends well."""
    server = Server(tmp_path / "home")
    server.start()
    try:
        toy.behave(repo, train_1={"seconds": 12}, train_2={"seconds": 25})
        flow = server.start_flow(repo)
        run = flow.id()
        assert soon(lambda: training(repo))
        server.stop()
        time.sleep(8)
        server.start()
        assert flow.process.wait(120) == 0
        assert server.flow_run(run)["state_type"] == "COMPLETED", server.flow_run(run)["state"]
        assert server.states(run) == dict.fromkeys(toy.NAMES, "Executed")
    finally:
        server.stop()
    gone(repo)


def test_ctrl_c_ends_all(server: Server, repo: Path) -> None:
    """On a flow that was started by hand."""
    flow = started(server, repo)
    os.kill(flow.process.pid, signal.SIGINT)
    flow.process.wait(30)
    gone(repo)
    completes(server, repo)
