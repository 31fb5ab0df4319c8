"""Cancellation, kill -9 and lost servers: no process is left behind, and the next run completes."""

import signal
import subprocess
from pathlib import Path

import pytest

from tests.flows import toy
from tests.flows.server import Server, check_gone, end, soon, started, training

pytestmark = pytest.mark.flows


def test_cancellation_and_then_a_killed_worker(server: Server, repo: Path) -> None:
    """First by the button in the UI; after the kill, the flow must end itself: no worker takes it over.

    The next run does the remaining work, and trainings continue from their checkpoints.
    """
    server.deploy(repo)
    toy.behave(repo, train_1={"seconds": 90}, train_2={"seconds": 90})
    worker = server.worker(repo, "pipelines")
    try:
        run = server.trigger(parallel=3)  # a place for align beside both trainings
        assert soon(lambda: training(repo)), server.log("worker")
        assert soon(lambda: server.states(run).get("align") == "Executed")
        server.post(f"flow_runs/{run}/set_state", {"state": {"type": "CANCELLING"}})
        check_gone(repo, lambda line: "prefect worker" in line or "prefect.engine" in line)
        assert soon(lambda: server.flow_run(run)["state_type"] == "CANCELLED", 40), server.flow_run(run)
        assert "Finished in state Running" not in server.logs(run)
        assert "A stage that it needs has not succeeded." in server.logs(run)
        the_worker_is_killed(server, repo, worker)
    finally:
        end(worker)
    check_gone(repo)
    toy.behave(repo)
    run = server.run_flow(repo)
    states = server.states(run)
    assert server.flow_run(run)["state_type"] == "COMPLETED", server.flow_run(run)["state"]
    assert (states["download"], states["train@1"], states["train@2"]) == ("Unchanged", "Executed", "Executed")
    assert [note[1] for note in toy.notes(repo) if note[0] == "train@1"][:2] == ["start 0", "start 1"]
    assert toy.dvc(repo, "status") == "Data and pipelines are up to date."


def the_worker_is_killed(server: Server, repo: Path, worker: "subprocess.Popen[bytes]") -> None:
    """Kill it while trainings continue from checkpoints."""
    run = server.trigger()
    again = {"train@1", "train@2"}
    assert soon(lambda: {name for name, what, *_ in toy.notes(repo) if what == "start 1"} >= again)
    worker.kill()
    worker.wait()
    check_gone(repo)
    # The flow itself works elsewhere, and is still about to tell of its end.
    assert soon(lambda: server.flow_run(run)["state_type"] == "CRASHED", 60), server.flow_run(run)["state"]
    message = server.flow_run(run)["state"]["message"]
    assert "the worker that had started this run is gone" in message
    assert "0 executed, 2 unchanged, 0 cached, 0 failed, 2 cancelled, 1 not run" in message


def test_a_killed_flow_leaves_nothing_and_is_marked_crashed(server: Server, repo: Path) -> None:
    """Nothing else reports it: the automation of the deployment does, after a period without heartbeats.

    Meanwhile, Ctrl-C ends another run, which was started by hand.
    """
    path = repo / "deploy" / "automation.yaml"
    content = path.read_text().replace("within: 90", "within: 35").replace("convs2s: ", "hasty: ")
    path.write_text(content)
    server.deploy(repo, again=True)
    try:
        flow = started(server, repo)
        run = flow.run
        flow.process.kill()
        check_gone(repo)
        assert server.flow_run(run)["state_type"] == "RUNNING"
        (repo / "notes.jsonl").unlink()
        second = started(server, repo)
        second.process.send_signal(signal.SIGINT)
        check_gone(repo, lambda line: "import reproduce" in line)  # which still reports its end to the server
        assert soon(lambda: server.flow_run(run)["state_type"] == "CRASHED", 90), server.flow_run(run)
        assert "No heartbeat for 90 s" in server.flow_run(run)["state"]["message"]
    finally:  # other tests' runs may be slow to give a sign of life
        for automation in server.post("automations/filter", {}):
            if automation["name"].startswith("hasty: "):
                server.client.delete(f"automations/{automation['id']}").raise_for_status()


def test_a_server_that_restarts_during_a_run(server: Server, repo: Path) -> None:
    """Stages continue, and even start, without the server, and the run completes.

    A server that was down has missed heartbeats; a run that it has marked Crashed corrects its state.
    """
    toy.behave(repo, train_1={"seconds": 6}, train_2={"seconds": 8})
    flow = server.start_flow(repo)
    run = flow.run
    assert soon(lambda: training(repo))
    server.post(f"flow_runs/{run}/set_state", {"state": {"type": "CRASHED"}, "force": True})
    assert soon(lambda: server.flow_run(run)["state_type"] == "RUNNING", 10)
    assert server.process is not None
    end(server.process)
    done = soon(lambda: "evaluate" in toy.ran(repo))
    server.start()  # for other tests, too
    assert done
    flow.process.wait(120)
    assert server.flow_run(run)["state_type"] == "COMPLETED", server.flow_run(run)["state"]
    assert server.states(run) == dict.fromkeys(toy.NAMES, "Executed")
    check_gone(repo)
