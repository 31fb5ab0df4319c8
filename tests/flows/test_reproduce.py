"""The flow `reproduce` on a real server, with fake stages: order, states, overrides, errors."""

import json
import os
from pathlib import Path

import pytest
from pydantic import ValidationError
from ruamel.yaml import YAML

from convs2s.text.corpus.parallel import cores
from pipelines.flows import run_stages, workspace
from pipelines.flows.graph import read_graph
from pipelines.flows.reproduce import ReproduceParams
from tests.flows import toy
from tests.flows.server import Server, soon

pytestmark = pytest.mark.flows


def test_seeds_run_in_parallel_and_dvc_has_nothing_left_to_do(
    server: Server, repo: Path, tmp_path: Path
) -> None:
    """The flow leaves the workspace as `dvc repro` would, and its pages tell which run it was."""
    toy.behave(repo, train_1={"seconds": 6}, train_2={"seconds": 6})
    revision = workspace.revision(repo)
    run = server.run_flow(repo, parallel=3)  # align, too, starts at that moment
    found = server.flow_run(run)
    assert found["state_type"] == "COMPLETED", found["state"]
    assert found["name"].endswith(f", seeds 1, 2, {revision}")
    assert server.states(run) == dict.fromkeys(toy.NAMES, "Executed")
    assert toy.overlap(repo, "train@1", "train@2")
    logged = server.logs(run)
    assert "Running stage 'download':" in logged
    assert "hunter2" not in logged and "password=*** at https://***@example.org/x" in logged
    assert "1/10 [" not in logged  # the progress bar
    assert server.auth.split(":")[1] not in logged + json.dumps(server.artifacts(run))
    assert toy.dvc(repo, "status") == "Data and pipelines are up to date."
    serial = toy.make(tmp_path / "serial")
    toy.dvc(serial, "repro")
    locks = [YAML(typ="safe").load((folder / "dvc.lock").read_text()) for folder in (repo, serial)]
    assert locks[0] == locks[1]


def test_an_edit_runs_only_what_it_affects_on_gpus_and_cores_of_its_own(
    server: Server, repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Leased ids become the child's CUDA_VISIBLE_DEVICES; other stages see no GPU (nvidia-smi is fake)."""
    program = tmp_path / "nvidia-smi"
    program.write_text('#!/bin/sh\nprintf "0\\n1\\n2\\n3\\n"\n')
    program.chmod(0o755)
    monkeypatch.setitem(server.env, "PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.delitem(server.env, "OMP_NUM_THREADS", raising=False)
    toy.dvc(repo, "repro")
    (repo / "notes.jsonl").unlink()
    toy.set_params(repo, {"train.dropout": 0.4})
    toy.behave(repo, train_1={"seconds": 3}, train_2={"seconds": 3})
    run = server.run_flow(repo, gpus=[3, 1], parallel=1)
    affected, others = ("train@1", "train@2", "evaluate"), {"download": "Unchanged", "align": "Unchanged"}
    assert server.states(run) == others | dict.fromkeys(affected, "Executed"), server.flow_run(run)["state"]
    seen = {note[0]: note[4] for note in toy.notes(repo)}
    assert {seen.pop("train@1"), seen.pop("train@2")} == {"1", "3"}
    assert seen == {"evaluate": ""}
    threads = {note[0]: note[5] for note in toy.notes(repo)}
    half = str(max(1, cores() // 2))
    assert threads == {"train@1": half, "train@2": half, "evaluate": None}
    assert toy.overlap(repo, "train@1", "train@2")
    toy.set_params(repo, {"train.dropout": 0.0})
    run = server.run_flow(repo)
    assert server.states(run) == others | dict.fromkeys(affected, "Cached")


UNFORESEEN = """

plain = GuardedRunner.reproduce


def reproduce(self, stage, *options):
    if stage == "train@1":
        raise OSError(28, "No space left on device")
    return plain(self, stage, *options)


GuardedRunner.reproduce = reproduce
"""


def test_a_failing_stage_is_retried_and_its_fault_is_in_its_state(server: Server, repo: Path) -> None:
    """Stages that do not depend on it still run; the next run does only the remaining work.

    A stage at its deadline is not retried. Unforeseen errors fail the run, too.
    """
    module = repo / "pipelines" / "flows" / "dvc_stage.py"
    code = module.read_text()
    module.write_text(code + UNFORESEEN)
    toy.behave(repo, download={"fails": 2}, train_2={"fails": 2}, align={"seconds": 60})
    run = server.run_flow(repo, hours={"align": 0.002})
    summary = server.flow_run(run)["state"]["message"]
    assert server.flow_run(run)["state_type"] == "FAILED"
    failed = {"train@1": "Failed", "train@2": "Failed", "align": "TimedOut", "evaluate": "NotReady"}
    assert server.states(run) == {"download": "Executed"} | failed
    counts = {name: task["run_count"] for name, task in server.tasks(run).items() if name != "evaluate"}
    assert counts == {"download": 3, "train@1": 2, "train@2": 2, "align": 1}
    assert "toy: CUDA error: no device" in server.tasks(run)["train@2"]["state"]["message"]
    assert "1 executed, 0 unchanged, 0 cached, 3 failed, 1 not run" in summary
    assert "toy: CUDA error: no device" in summary
    assert "was ended at its deadline, 0.002 h." in summary
    assert "train@1 failed, OSError: [Errno 28] No space left on device" in summary
    module.write_text(code)
    toy.behave(repo)
    run = server.run_flow(repo)
    assert server.states(run) == dict.fromkeys(toy.NAMES, "Executed") | {"download": "Unchanged"}


def test_a_flow_refuses_to_start_and_says_why(server: Server, repo: Path) -> None:
    """Another run may be using the workspace, or a value may be invalid."""
    toy.behave(repo, download={"seconds": 90})
    first = server.start_flow(repo)
    first.id()
    assert soon(lambda: bool(toy.notes(repo)))
    second = server.run_flow(repo)
    assert f"another flow run works in {repo}" in server.flow_run(second)["state"]["message"]
    assert server.tasks(second) == {}
    server.post(f"flow_runs/{first.id()}/set_state", {"state": {"type": "CANCELLING"}, "force": True})
    first.process.wait(60)
    assert server.flow_run(first.id())["state_type"] == "CANCELLED"
    toy.set_params(repo, {"train.dropout": 3})
    third = server.flow_run(server.run_flow(repo))
    assert third["name"] == "invalid parameters"
    assert "train.dropout" in third["state"]["message"]


def test_unknown_names_and_gpus_are_reported_at_the_start(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the run would fail only when the first stage needs them, or never start it."""
    stages = list(read_graph(repo).values())
    with pytest.raises(ValueError, match=r"gpus: expected .* found \[0, 99\]"):
        run_stages.StagesRun(ReproduceParams(gpus=[0, 99]), stages)
    with pytest.raises(ValueError, match=r"hours: expected some of .* found trian"):
        run_stages.StagesRun(ReproduceParams(hours={"trian": 3}), stages)
    monkeypatch.setattr(run_stages, "choose_gpus", lambda _: [])  # on a remote worker, the CPU will not do
    with pytest.raises(ValueError, match=r"train@1 needs 1 GPUs, but .* has 0: .* with more GPUs"):
        run_stages.StagesRun(ReproduceParams(), stages, for_others=True)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (
            {"overrides": {"train.dropout": 0.1}, "targets": ["align"]},
            "expected overrides or targets, not both",
        ),
        ({"force": True, "remote": "gpu"}, "expected force only with remote none"),
        ({"hours": {"train": 0}}, r"hours\.train"),
        ({"hours": {"train": float("nan")}}, r"hours\.train"),
        ({"target": ["align"]}, "Extra inputs are not permitted"),
    ],
)
def test_contradictory_parameters_are_rejected(asked: dict[str, object], message: str) -> None:
    """The form rejects them before anything starts."""
    with pytest.raises(ValidationError, match=message):
        ReproduceParams.model_validate(asked)
