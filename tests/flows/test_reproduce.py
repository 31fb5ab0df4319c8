"""The flow `reproduce` on a real server, with fake stages: order, states, overrides, errors."""

import json
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from convs2s.base.parallel import cores
from convs2s.config.load import load_params
from pipelines.flows import workspace
from tests.flows import toy
from tests.flows.server import Server


@pytest.mark.flows
def test_the_flow_does_what_dvc_repro_does(
    server: Server, repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seeds run in parallel; then an edit, forced stages, and overrides run only what they must."""
    toy.behave(repo, train_1={"seconds": 6}, train_2={"seconds": 6})
    revision = workspace.revision(repo)
    run = server.run_flow(repo, parallel=3)  # align, too, starts at that moment
    flow_run = server.flow_run(run)
    assert flow_run["state_type"] == "COMPLETED", flow_run["state"]
    assert flow_run["name"] == revision
    assert server.states(run) == dict.fromkeys(toy.NAMES, "Executed")
    assert toy.overlap(repo, "train@1", "train@2")
    logged = server.logs(run)
    assert "Running stage 'download':" in logged
    assert "1/10 [" not in logged  # the progress bar
    assert server.auth.split(":")[1] not in logged + json.dumps(server.artifacts(run))
    assert toy.dvc(repo, "status") == "Data and pipelines are up to date."
    serial = toy.make(tmp_path / "serial")
    toy.dvc(serial, "repro")
    locks = [YAML(typ="safe").load((folder / "dvc.lock").read_text()) for folder in (repo, serial)]
    assert locks[0] == locks[1]
    an_edit_runs_only_what_it_affects_on_gpus_and_cores_of_its_own(server, repo, tmp_path, monkeypatch)
    overrides_leave_the_workspace_alone(server, repo)


def an_edit_runs_only_what_it_affects_on_gpus_and_cores_of_its_own(
    server: Server, repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Leased ids become the child's CUDA_VISIBLE_DEVICES; other stages see no GPU (nvidia-smi is fake)."""
    (repo / "notes.jsonl").unlink()
    toy.set_params(repo, {"train.dropout": 0.4})
    toy.behave(repo, train_1={"seconds": 3}, train_2={"seconds": 3})
    with monkeypatch.context() as patch:
        patch.setitem(server.env, "PATH", toy.with_gpus(tmp_path / "bin", 4))
        patch.setitem(server.env, "CUDA_VISIBLE_DEVICES", "3,1")
        patch.delitem(server.env, "OMP_NUM_THREADS", raising=False)
        run = server.run_flow(repo, parallel=1)
    affected, unchanged = ("train@1", "train@2", "evaluate"), {"download": "Unchanged", "align": "Unchanged"}
    assert server.states(run) == unchanged | dict.fromkeys(affected, "Executed"), server.flow_run(run)[
        "state"
    ]
    gpus, threads = ({note[0]: note[column] for note in toy.notes(repo)} for column in (4, 5))
    assert {gpus.pop("train@1"), gpus.pop("train@2")} == {"1", "3"}
    assert gpus == {"evaluate": ""}
    half = str(max(1, cores() // 2))
    assert threads == {"train@1": half, "train@2": half, "evaluate": None}
    assert toy.overlap(repo, "train@1", "train@2")


def overrides_leave_the_workspace_alone(server: Server, repo: Path) -> None:
    """The results become an experiment; here all are in the cache, from the first run."""
    files = [repo / "params.yaml", repo / "dvc.lock", repo / "data/trained/1/content"]
    before = [path.read_bytes() for path in files]
    run = server.run_flow(repo, overrides=["train.dropout=0.0"])
    assert server.flow_run(run)["state_type"] == "COMPLETED", server.flow_run(run)["state"]
    assert server.flow_run(run)["name"].endswith("+, train.dropout=0.0")
    assert [server.states(run)[name] for name in ("train@1", "train@2")] == ["Cached", "Cached"]
    assert [path.read_bytes() for path in files] == before
    assert not list((repo / ".dvc/tmp/flows").iterdir())
    name = toy.dvc(repo, "exp", "list", "--name-only")
    assert name.startswith("dropout-0-0-")
    toy.dvc(repo, "exp", "apply", "--quiet", name)
    assert load_params(repo / "params.yaml").train.dropout == 0.0
    assert "dropout-0.0" in files[2].read_text()


UNFORESEEN = """

def reproduce(self, stage, *options, plain=GuardedRunner.reproduce):
    if stage == "train@1":
        raise OSError(28, "No space left on device")
    return plain(self, stage, *options)

GuardedRunner.reproduce = reproduce
"""


@pytest.mark.flows
def test_a_failing_stage_is_retried_and_its_fault_is_in_its_state(server: Server, repo: Path) -> None:
    """Stages that do not depend on it still run; one at its deadline is not retried."""
    module = repo / "pipelines" / "flows" / "dvc_stage.py"
    module.write_text(module.read_text() + UNFORESEEN)
    toy.behave(repo, download={"fails": 2}, train_2={"fails": 2}, align={"seconds": 60})
    pipeline = (repo / "dvc.yaml").read_text()
    (repo / "dvc.yaml").write_text(
        pipeline.replace("[data/alignment]\n", "[data/alignment]\n    meta: {hours: 0.002}\n", 1)
    )
    run = server.run_flow(repo)
    summary = server.flow_run(run)["state"]["message"]
    assert server.flow_run(run)["state_type"] == "FAILED"
    failed = {"train@1": "Failed", "train@2": "Failed", "align": "TimedOut", "evaluate": "NotReady"}
    assert server.states(run) == {"download": "Executed"} | failed
    counts = {name: task["run_count"] for name, task in server.tasks(run).items() if name != "evaluate"}
    assert counts == {"download": 3, "train@1": 2, "train@2": 2, "align": 1}
    assert "toy: CUDA error: no device" in server.tasks(run)["train@2"]["state"]["message"]
    assert summary.startswith("1 Executed, 2 Failed, 1 NotReady, 1 TimedOut")
    assert "toy: CUDA error: no device" in summary
    assert "was ended at its deadline, 0.002 h." in summary
    assert "OSError: [Errno 28] No space left on device" in summary
