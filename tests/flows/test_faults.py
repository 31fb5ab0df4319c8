"""Programs of Prefect after kill -9, and lost servers; `test_machine` has a cancellation."""

from pathlib import Path

import pytest

from tests.flows import toy
from tests.flows.server import Server, check_gone, end, soon, training

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
    process.wait(120)
    assert server.flow_run(run)["state_type"] == "COMPLETED", server.flow_run(run)["state"]
    assert server.states(run) == dict.fromkeys(toy.NAMES, "Executed")
    check_gone(repo)
