"""A flow that dies without reporting it, and a server that is down for a while."""

from pathlib import Path

import pytest

from tests.flows import toy
from tests.flows.server import Server, soon
from tests.flows.trainings import gone, started, training

pytestmark = pytest.mark.flows


def test_a_killed_flow_is_marked_crashed(server: Server, repo: Path) -> None:
    """Nothing else reports it: the automation of the deployment does, after a period without heartbeats."""
    path = repo / "deploy" / "automation.yaml"
    content = path.read_text().replace("within: 90", "within: 35").replace("convs2s: ", "hasty: ")
    path.write_text(content)
    server.deploy(repo, again=True)
    try:
        flow = started(server, repo)
        run = flow.id()
        flow.process.kill()
        assert server.flow_run(run)["state_type"] == "RUNNING"
        assert soon(lambda: server.flow_run(run)["state_type"] == "CRASHED", 90), server.flow_run(run)[
            "state"
        ]
        assert "No heartbeat for 90 s" in server.flow_run(run)["state"]["message"]
    finally:  # other tests' runs may be slow to give a sign of life
        for automation in server.post("automations/filter", {}):
            if automation["name"].startswith("hasty: "):
                server.client().delete(f"automations/{automation['id']}").raise_for_status()


@pytest.mark.slow
def test_a_live_run_marked_crashed_corrects_its_state(server: Server, repo: Path) -> None:
    """A server that was down has missed heartbeats; that must not end a training of days."""
    toy.behave(repo, train_1={"seconds": 14}, train_2={"seconds": 14})
    flow = server.start_flow(repo)
    run = flow.id()
    assert soon(lambda: training(repo))
    server.post(f"flow_runs/{run}/set_state", {"state": {"type": "CRASHED"}, "force": True})
    assert soon(lambda: server.flow_run(run)["state_type"] == "RUNNING", 10)
    flow.process.wait(60)
    assert server.flow_run(run)["state_type"] == "COMPLETED", server.flow_run(run)["state"]


def test_a_server_that_restarts_during_a_run(server: Server, repo: Path) -> None:
    """Stages continue, and even start, without the server, and the run completes."""
    toy.behave(repo, train_1={"seconds": 2}, train_2={"seconds": 4})
    flow = server.start_flow(repo)
    run = flow.id()
    assert soon(lambda: training(repo))
    with server.away():
        assert soon(lambda: "evaluate" in toy.ran(repo))
    assert flow.process.wait(120) == 0
    assert server.flow_run(run)["state_type"] == "COMPLETED", server.flow_run(run)["state"]
    assert server.states(run) == dict.fromkeys(toy.NAMES, "Executed")
    server_and_flow_die_at_once(server, repo)
    gone(repo)


def server_and_flow_die_at_once(server: Server, repo: Path) -> None:
    """As when memory runs out: no stage continues alone, and the next run resumes from the checkpoints."""
    toy.set_params(repo, {"train.dropout": 0.4})
    toy.behave(repo, train_1={"seconds": 90}, train_2={"seconds": 90})
    before = len(toy.notes(repo))
    flow = server.start_flow(repo)
    assert soon(lambda: len(toy.notes(repo)) == before + 2)  # both trainings
    flow.process.kill()
    with server.away():
        gone(repo)
    toy.behave(repo)
    run = server.run_flow(repo)
    assert server.flow_run(run)["state_type"] == "COMPLETED", server.flow_run(run)["state"]
    trainings = ["train@1", "train@2", "evaluate"]
    assert server.states(run) == dict.fromkeys(toy.NAMES, "Unchanged") | dict.fromkeys(trainings, "Executed")
    starts = [what for name, what, *_ in toy.notes(repo) if name == "train@1" and what != "end"]
    assert starts == ["start 0", "start 1", "start 2"]
