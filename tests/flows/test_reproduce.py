"""The flow `reproduce` on a real server, with fake stages: order, states, errors."""

import contextlib
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from convs2s.base.parallel import cores
from convs2s.config.load import parse_yaml
from pipelines.flows import reproduce, sweep, workspace
from pipelines.flows.dvc_stage import Stop
from tests.flows import toy
from tests.flows.server import Server, soon
from tests.later_keys import gained_keys


@pytest.mark.parametrize(
    ("module", "flow", "params"),
    [
        (reproduce, reproduce.reproduce, reproduce.RunParams()),
        (sweep, sweep.sweep, sweep.SweepParams(table="table5")),
    ],
)
def test_a_run_from_the_page_stops_at_a_key_that_came_later(
    module: Any, flow: Any, params: Any, repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `make flow` does before it starts anything: such a key alone would train for days again."""
    monkeypatch.setattr(module, "ROOT", repo)
    monkeypatch.setattr(module, "stop_if_cancelled", lambda: contextlib.nullcontext(Stop()))
    monkeypatch.setattr(module.experiment, "claim", lambda _: contextlib.nullcontext())
    monkeypatch.setattr(module, "StagesRun", lambda *_: pytest.fail("stages would run"))
    train = parse_yaml((repo / "params.yaml").read_text(encoding="utf-8"), "params.yaml")["train"]
    lock = {"stages": {"train@1": {"params": {"params.yaml": {"train": train}}}}}
    (repo / "dvc.lock").write_text(json.dumps(lock))
    with gained_keys(), pytest.raises(ValueError, match=r"(?s)as before: train\.added_key\..*force train@1"):
        toy.set_params(repo, {"train.added_key": 0.0})
        flow.fn(params)


@contextlib.contextmanager
def web_hook(server: Server, repo: Path) -> Iterator[list[str]]:
    """Have the server report failures to a web hook; yield what it posts there."""
    posted = list[str]()

    class Hook(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            posted.append(self.rfile.read(int(self.headers["Content-Length"])).decode())
            self.send_response(200)
            self.end_headers()

    with ThreadingHTTPServer(("127.0.0.1", 0), Hook) as http:
        threading.Thread(target=http.serve_forever, daemon=True).start()
        command = [sys.executable, "-m", "pipelines.flows.machine", "notify"]
        url = f"http://127.0.0.1:{http.server_port}"
        env = {**server.env, "PYTHONPATH": toy.python_path(repo)}
        subprocess.run(command, cwd=repo, env=env, input=url, text=True, check=True)
        yield posted
        for automation in server.post("automations/filter", {}):
            if automation["name"] == "convs2s: tell when a run fails":
                server.client.delete(f"automations/{automation['id']}").raise_for_status()
        http.shutdown()


@pytest.mark.flows
@pytest.mark.slow
def test_the_flow_does_what_dvc_repro_does(
    server: Server, repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seeds run in parallel, each with a GPU of its own (nvidia-smi is fake); other stages see none."""
    toy.behave(repo, train_1={"seconds": 6}, train_2={"seconds": 6})
    monkeypatch.setitem(server.env, "PATH", toy.with_gpus(tmp_path / "bin", 4))
    monkeypatch.setitem(server.env, "CUDA_VISIBLE_DEVICES", "3,1")
    monkeypatch.delitem(server.env, "OMP_NUM_THREADS", raising=False)
    run = server.run_flow(repo, parallel=3)
    assert server.flow_run(run)["state_type"] == "COMPLETED", server.flow_run(run)["state"]
    assert server.flow_run(run)["name"] == workspace.revision(repo)
    assert server.states(run) == dict.fromkeys(toy.NAMES, "Executed")
    gpus, threads = ({note[0]: note[column] for note in toy.notes(repo)} for column in (4, 5))
    assert {gpus.pop("train@1"), gpus.pop("train@2")} == {"1", "3"}
    assert {*gpus.values()} == {""}
    half = str(max(1, cores() // 2))
    assert [threads[name] for name in ("train@1", "train@2", "evaluate")] == [half, half, None]
    logged = server.logs(run)
    assert "To track the changes" not in logged
    assert "Running stage 'download':" in logged
    assert "1/10 [" not in logged  # the progress bar
    assert server.auth.split(":")[1] not in logged
    assert toy.dvc(repo, "status") == "Data and pipelines are up to date."
    serial = toy.make(tmp_path / "serial")
    toy.dvc(serial, "repro")
    locks = [YAML(typ="safe").load((folder / "dvc.lock").read_text()) for folder in (repo, serial)]
    assert locks[0] == locks[1]


@pytest.mark.flows
def test_a_failing_stage_is_retried_and_its_fault_is_in_its_state(server: Server, repo: Path) -> None:
    """Stages that do not depend on it still run; one at its deadline is not retried."""
    toy.behave(repo, download={"fails": 2}, train_2={"fails": 2}, align={"seconds": 60})
    pipeline = (repo / "dvc.yaml").read_text()
    (repo / "dvc.yaml").write_text(
        pipeline.replace("meta: {gpus: 1, idle_without", "meta: {hours: 0.002, idle_without")
    )
    with web_hook(server, repo) as posted:
        run = server.run_flow(repo)
        assert soon(lambda: bool(posted), 20)
    summary = server.flow_run(run)["state"]["message"]
    (text,) = {json.loads(body)["text"] for body in posted}  # Prefect delivers an event at least once
    assert text.startswith(f"reproduce {server.flow_run(run)['name']}: Failed\n2 Executed, 1 Failed")
    assert "toy: CUDA error: no device" in text and text.endswith(f"/runs/flow-run/{run}")
    assert server.flow_run(run)["state_type"] == "FAILED"
    assert server.states(run) == {
        "download": "Executed", "train@1": "Executed",
        "train@2": "Failed", "align": "TimedOut", "evaluate": "NotReady",
    }  # fmt: skip
    counts = {name: task["run_count"] for name, task in server.tasks(run).items() if name != "evaluate"}
    assert counts == {"download": 3, "train@1": 1, "train@2": 2, "align": 1}
    assert "toy: CUDA error: no device" in server.tasks(run)["train@2"]["state"]["message"]
    assert summary.startswith("2 Executed, 1 Failed, 1 NotReady, 1 TimedOut")
    assert "toy: CUDA error: no device" in summary
    assert "was ended at its deadline, 0.002 h." in summary
