"""The flow `reproduce` on a real server, with fake stages: order, states, overrides, errors."""

import json
import os
from pathlib import Path

import pytest
from pydantic import ValidationError
from ruamel.yaml import YAML

from convs2s.text.corpus.parallel import cores
from pipelines.flows import run_stages, workspace
from pipelines.flows.graph import read_graph, restrict
from pipelines.flows.reproduce import ReproduceParams
from tests.flows import toy
from tests.flows.server import Server, soon

pytestmark = pytest.mark.flows


def test_seeds_run_in_parallel_and_dvc_has_nothing_left_to_do(
    server: Server, repo: Path, tmp_path: Path
) -> None:
    """The flow leaves the workspace as `dvc repro` would."""
    toy.behave(repo, train_1={"seconds": 6}, train_2={"seconds": 6})
    run = server.run_flow(repo, parallel=3)  # align, too, starts at that moment
    assert server.flow_run(run)["state_type"] == "COMPLETED"
    assert server.states(run) == dict.fromkeys(toy.NAMES, "Executed")
    assert toy.overlap(repo, "train@1", "train@2")
    times = {name: (task["start_time"], task["end_time"]) for name, task in server.tasks(run).items()}
    assert max(times["train@1"][0], times["train@2"][0]) < min(times["train@1"][1], times["train@2"][1])
    assert toy.dvc(repo, "status") == "Data and pipelines are up to date."
    assert "Running stage" not in toy.dvc(repo, "repro")
    serial = toy.make(tmp_path / "serial")
    toy.dvc(serial, "repro")
    locks = [YAML(typ="safe").load((folder / "dvc.lock").read_text()) for folder in (repo, serial)]
    assert locks[0] == locks[1]


def test_each_training_gets_a_gpu_and_cores_of_its_own(
    server: Server, repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Leased ids become the child's CUDA_VISIBLE_DEVICES; other stages see no GPU (nvidia-smi is fake)."""
    program = tmp_path / "nvidia-smi"
    program.write_text('#!/bin/sh\nprintf "0\\n1\\n2\\n3\\n"\n')
    program.chmod(0o755)
    monkeypatch.setitem(server.env, "PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.delitem(server.env, "OMP_NUM_THREADS", raising=False)
    toy.behave(repo, train_1={"seconds": 3}, train_2={"seconds": 3})
    run = server.run_flow(repo, gpus=[3, 1], parallel=1, targets=["train"])
    assert server.flow_run(run)["state_type"] == "COMPLETED", server.flow_run(run)["state"]
    seen = {note[0]: note[4] for note in toy.notes(repo)}
    assert {seen.pop("train@1"), seen.pop("train@2")} == {"1", "3"}
    assert seen == {"download": ""}
    threads = {note[0]: note[5] for note in toy.notes(repo)}
    half = str(max(1, cores() // 2))
    assert threads == {"download": None, "train@1": half, "train@2": half}
    assert toy.overlap(repo, "train@1", "train@2")


def test_a_run_shows_its_data_seeds_and_changes(server: Server, repo: Path) -> None:
    """So that users can find the right one among a hundred runs."""
    run = server.run_flow(repo, targets=["download"])
    found = server.flow_run(run)
    assert found["name"] == f"tatoeba-en-de, seeds 1, 2, {workspace.revision(repo)}"
    logged = server.logs(run)
    assert "Running stage 'download':" in logged
    assert "hunter2" not in logged and "password=*** at https://***@example.org/x" in logged
    assert "1/10 [" not in logged  # the progress bar
    assert server.auth.split(":")[1] not in logged + json.dumps(server.artifacts(run))


def test_an_edit_runs_only_what_it_affects(server: Server, repo: Path) -> None:
    """In the UI, the states Executed, Unchanged and Cached show what DVC did."""
    toy.dvc(repo, "repro")
    toy.set_params(repo, {"train.dropout": 0.4})
    run = server.run_flow(repo)
    affected = {"train@1": "Executed", "train@2": "Executed", "evaluate": "Executed"}
    assert server.states(run) == {"download": "Unchanged", "align": "Unchanged", **affected}
    toy.set_params(repo, {"train.dropout": 0.0})
    run = server.run_flow(repo)
    assert server.states(run) == {"download": "Unchanged", "align": "Unchanged"} | dict.fromkeys(
        affected, "Cached"
    )
    run = server.run_flow(repo, targets=["download"], force=True)
    assert server.states(run) == {"download": "Executed"}


def test_overrides_become_an_experiment_and_leave_the_workspace_alone(server: Server, repo: Path) -> None:
    """A flow must never edit the user's params.yaml."""
    toy.dvc(repo, "repro")
    before = {path: (repo / path).read_bytes() for path in ("params.yaml", "dvc.lock")}
    run = server.run_flow(repo, overrides={"train.dropout": 0.35})
    assert server.flow_run(run)["name"].endswith(", train.dropout=0.35")
    assert server.flow_run(run)["state_type"] == "COMPLETED"
    assert {path: (repo / path).read_bytes() for path in before} == before
    states = server.states(run)
    assert states["download"] in {"Cached", "Unchanged"} and states["train@1"] == "Executed"
    name = toy.dvc(repo, "exp", "list", "--name-only")
    shown = json.loads(toy.dvc(repo, "exp", "show", "--json"))
    experiment = shown[1]["experiments"][0]["revs"][0]
    assert (experiment["name"], experiment["data"]["params"]["params.yaml"]["data"]["train"]["dropout"]) == (
        name,
        0.35,
    )
    assert not list((repo / ".dvc/tmp/flows").iterdir())


def test_a_failing_stage_is_retried_and_its_last_lines_are_in_its_state(server: Server, repo: Path) -> None:
    """Stages that do not depend on it still run; the next run does only the remaining work."""
    toy.behave(repo, download={"fails": 2}, train_2={"fails": 2})
    run = server.run_flow(repo)
    assert server.flow_run(run)["state_type"] == "FAILED"
    states = server.states(run)
    assert states == dict.fromkeys(toy.NAMES, "Executed") | {"train@2": "Failed", "evaluate": "NotReady"}
    assert server.tasks(run)["download"]["run_count"] == 3
    assert server.tasks(run)["train@2"]["run_count"] == 2
    message = server.tasks(run)["train@2"]["state"]["message"]
    assert "toy: CUDA error: no device" in message
    summary = server.flow_run(run)["state"]["message"]
    assert "3 executed, 0 unchanged, 0 cached, 1 failed, 1 not run" in summary
    assert "toy: CUDA error: no device" in summary
    run = server.run_flow(repo)
    rest = {"train@2": "Executed", "evaluate": "Executed"}
    assert server.states(run) == dict.fromkeys(toy.NAMES, "Unchanged") | rest


def test_a_stage_is_stopped_at_its_deadline(server: Server, repo: Path) -> None:
    """It is not retried, because it would take just as long again."""
    toy.behave(repo, align={"seconds": 60})
    run = server.run_flow(repo, targets=["align"], hours={"align": 0.002})
    assert "was ended at its deadline, 0.002 h." in server.flow_run(run)["state"]["message"]
    assert len([note for note in toy.notes(repo) if note[0] == "align"]) == 1


def test_a_flow_refuses_to_start_and_says_why(server: Server, repo: Path) -> None:
    """Another run may be using the workspace, or a value may be invalid."""
    toy.behave(repo, download={"seconds": 90})
    first = server.start_flow(repo)
    run = first.id()
    assert soon(lambda: bool(toy.notes(repo)))
    name = server.flow_run(run)["name"]
    second = server.run_flow(repo)
    message = server.flow_run(second)["state"]["message"]
    assert f"another flow run works in {repo}: reproduce {name}" in message
    assert server.tasks(second) == {}
    server.post(f"flow_runs/{first.id()}/set_state", {"state": {"type": "CANCELLING"}, "force": True})
    first.process.wait(60)
    assert server.flow_run(first.id())["state_type"] == "CANCELLED"
    toy.set_params(repo, {"train.dropout": 3})
    assert "params.yaml is invalid" in server.flow_run(server.run_flow(repo))["state"]["message"]


def test_unknown_names_and_gpus_are_reported_at_the_start(repo: Path) -> None:
    """Otherwise the run would fail only when the first stage needs them."""
    with pytest.raises(ValueError, match="targets: found nothing, which is not a stage"):
        restrict(read_graph(repo), ["nothing"])
    stages = list(read_graph(repo).values())
    with pytest.raises(ValueError, match=r"gpus: found \[0, 99\]"):
        run_stages.StagesRun(ReproduceParams(gpus=[0, 99]), stages)
    with pytest.raises(ValueError, match="hours: found trian, which is not a stage"):
        run_stages.StagesRun(ReproduceParams(hours={"trian": 3}), stages)


def test_any_fault_of_a_stage_fails_the_run(server: Server, repo: Path) -> None:
    """Unforeseen errors, too: a run is Completed only if all its stages are."""
    module = repo / "pipelines" / "flows" / "dvc_stage.py"
    module.write_text(module.read_text() + UNTHOUGHT_OF)
    run = server.run_flow(repo, targets=["train"])
    found = server.flow_run(run)
    assert found["state_type"] == "FAILED"
    assert "2 executed, 0 unchanged, 0 cached, 1 failed, 0 not run" in found["state"]["message"]
    assert "train@1 failed, OSError: [Errno 28] No space left on device" in found["state"]["message"]


UNTHOUGHT_OF = """

plain = GuardedRunner.reproduce


def reproduce(self, stage, *options):
    if stage == "train@1":
        raise OSError(28, "No space left on device")
    return plain(self, stage, *options)


GuardedRunner.reproduce = reproduce
"""


def test_a_cancellation_ends_the_wait_for_a_retry(server: Server, repo: Path) -> None:
    """Retries of a download are minutes apart."""
    content = (repo / "dvc.yaml").read_text().replace("retries: [0, 0]", "retries: [300]")
    (repo / "dvc.yaml").write_text(content)
    toy.behave(repo, download={"fails": 9})
    flow = server.start_flow(repo)
    run = flow.id()
    assert soon(lambda: server.tasks(run).get("download", {}).get("run_count") == 2)
    server.post(f"flow_runs/{run}/set_state", {"state": {"type": "CANCELLING"}, "force": True})
    flow.process.wait(60)
    assert server.flow_run(run)["state_type"] == "CANCELLED"
    assert len(toy.notes(repo)) == 1


def test_contradictory_parameters_are_rejected() -> None:
    """The form rejects them before anything starts."""
    with pytest.raises(
        ValidationError, match="overrides and targets: an experiment has the outputs of all stages"
    ):
        ReproduceParams(overrides={"train.dropout": 0.1}, targets=["align"])
    with pytest.raises(ValidationError, match="force and remote: results of remote stages come back through"):
        ReproduceParams(force=True, remote="gpu")
    for hours in (0, -1, float("nan")):
        with pytest.raises(ValidationError, match=r"hours\.train"):
            ReproduceParams(hours={"train": hours})
    with pytest.raises(ValidationError, match="Extra inputs are not permitted"):
        ReproduceParams.model_validate({"target": ["align"]})
