"""Programs of Prefect after kill -9, and lost servers; `test_machine` has a cancellation."""

import signal
import time
from pathlib import Path

import pytest

from tests.flows import toy
from tests.flows.server import Server, check_gone, end, processes, soon, training

pytestmark = [pytest.mark.flows, pytest.mark.slow]


def test_a_killed_flow_leaves_nothing_and_is_marked_crashed(server: Server, repo: Path) -> None:
    """It cannot mark itself, so the deployment's automation does, here after 35 s without a heartbeat."""
    server.deploy(repo)
    (found,) = server.post("automations/filter", {})
    path = f"automations/{found['id']}"
    automation = {key: found[key] for key in ("name", "description", "trigger", "actions")}
    hasty = automation | {"trigger": automation["trigger"] | {"within": 35.0}}
    server.client.put(path, json=hasty).raise_for_status()
    try:
        toy.behave(repo, train_1={"seconds": 90}, train_2={"seconds": 90})
        process, run = server.start_flow(repo)
        assert soon(lambda: training(repo)), server.log("flow")
        process.kill()
        check_gone(repo)
        assert soon(lambda: server.flow_run(run)["state_type"] == "CRASHED", 90)
        assert "No heartbeat for 90 s" in server.flow_run(run)["state"]["message"]
    finally:  # other tests' runs may be slow to give a sign of life
        server.client.put(path, json=automation).raise_for_status()


def test_a_run_goes_on_without_its_worker(server: Server, repo: Path) -> None:
    """The worker only starts runs, so its end must cost no training; no process is left after the run."""
    server.deploy(repo)
    toy.behave(repo, train_1={"seconds": 6}, train_2={"seconds": 6})
    worker = server.worker(repo, "pipelines")
    try:
        run = server.trigger()
        assert soon(lambda: training(repo)), server.log("worker")
        worker.kill()
        assert soon(lambda: server.flow_run(run)["state_type"] == "COMPLETED", 60), server.flow_run(run)
    finally:
        end(worker)
    check_gone(repo)


def test_a_server_that_restarts_during_a_run(server: Server, repo: Path) -> None:
    """A training that takes days must not depend on it: stages go on, and even start, without the server."""
    toy.behave(repo, train_1={"seconds": 6}, train_2={"seconds": 8})
    process, run = server.start_flow(repo)
    assert soon(lambda: training(repo))
    assert server.process is not None
    end(server.process)
    done = soon(lambda: "evaluate" in toy.ran(repo))
    server.start()  # for other tests, too
    assert done
    process.wait()
    assert server.flow_run(run)["state_type"] == "COMPLETED", server.flow_run(run)["state"]
    executed = dict.fromkeys(toy.NAMES, "Executed")
    assert soon(lambda: server.states(run) == executed, 30), server.states(run)  # events may come late
    check_gone(repo)


def checkpoints(repo: Path) -> list[Path]:
    """Return the first checkpoints of trainings with overrides."""
    return list(repo.glob(".dvc/tmp/flows/*/data/checkpoints/train@*/0"))


def test_a_run_is_cancelled_after_an_outage(server: Server, repo: Path) -> None:
    """Prefect's worker does not ask any more whether it is, so a training would hold its GPU for days.

    Its stages end within half a minute, their checkpoints are kept, and nothing becomes an experiment.
    """
    server.deploy(repo)
    toy.behave(repo, train_1={"seconds": 200}, train_2={"seconds": 200})
    toy.run(repo, "git", "add", "--force", "behave.json")
    toy.commit(repo)  # for the copy in which the run works
    worker = server.worker(repo, "pipelines")
    try:
        run = server.trigger(overrides=["train.dropout=0.3"])
        assert soon(lambda: len(checkpoints(repo)) == 2), server.log("worker")
        copy = checkpoints(repo)[0].parents[3]
        assert server.process is not None
        end(server.process)
        assert soon(lambda: "flow run cancellation will fail" in server.log("worker"), 60)
        server.start()
        crashed = {"type": "CRASHED", "name": "Crashed"}  # as the automation does without heartbeats
        server.post(f"flow_runs/{run}/set_state", {"state": crashed, "force": True})
        assert soon(lambda: server.flow_run(run)["state_type"] == "RUNNING", 10)
        server.signal(signal.SIGSTOP)
        time.sleep(12)
        server.signal(signal.SIGCONT)
        server.post(f"flow_runs/{run}/set_state", {"state": {"type": "CANCELLING"}})
        assert soon(lambda: not processes(copy), 30), processes(copy)
        assert soon(lambda: server.flow_run(run)["state_type"] == "CANCELLED", 20), server.flow_run(run)
    finally:
        end(worker)
    states = server.states(run)
    assert states["train@1"] == states["train@2"] == "Cancelled"
    assert len(checkpoints(repo)) == 2
    assert toy.dvc(repo, "exp", "list") == ""
    check_gone(repo)


def test_a_run_whose_server_does_not_come_back(
    server: Server, repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It runs all its stages; only then does it fail, because it cannot tell anybody."""
    monkeypatch.setitem(server.env, "PREFECT_CLIENT_MAX_RETRIES", "1")
    toy.behave(repo, train_1={"seconds": 4}, train_2={"seconds": 4})
    process, _ = server.start_flow(repo)
    assert soon(lambda: training(repo))
    assert server.process is not None
    end(server.process)
    try:
        assert process.wait() != 0
    finally:
        server.start()  # for other tests, too
    assert "evaluate" in toy.ran(repo)
    check_gone(repo)
