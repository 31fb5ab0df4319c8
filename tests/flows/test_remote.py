"""Stages on remote workers: clones that share only git and a DVC remote, with a real server."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from convs2s.config.load import load_params
from pipelines.flows import remote, workspace
from tests.flows import toy
from tests.flows.server import Server, check_gone, end, soon

Workers = dict[Path, "subprocess.Popen[bytes]"]


@pytest.fixture
def clones(pristine: Path, tmp_path: Path) -> list[Path]:
    """Clones of an orchestrator and two workers, with a bare repository as their remote."""
    toy.run(tmp_path, "git", "clone", "--quiet", "--bare", str(pristine), "shared.git")
    for name in ("home", "one", "two"):
        toy.run(tmp_path, "git", "clone", "--quiet", "shared.git", name)
    return [tmp_path / name for name in ("home", "one", "two")]


@pytest.fixture
def workers(
    request: pytest.FixtureRequest, server: Server, clones: list[Path], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Workers]:
    """The clones and processes of workers on machines with one GPU each (a fake nvidia-smi)."""
    repo, *workers = clones
    toy.dvc(repo, "remote", "add", "--default", "folder", str(repo.parent / "remote"))
    toy.set_params(repo, {"seeds": [1]})
    toy.commit(repo)
    server.deploy(repo)
    monkeypatch.setitem(server.env, "PATH", toy.with_gpus(repo.parent / "bin", 1))
    running = {worker: server.worker(worker, "remote") for worker in workers[: request.param]}
    yield running
    for process in running.values():
        end(process)


@pytest.mark.flows
@pytest.mark.parametrize("workers", [1], indirect=True)
def test_a_training_runs_remotely(server: Server, clones: list[Path], workers: Workers) -> None:
    """The orchestrator ends with all outputs and a clean status, without having trained."""
    repo = clones[0]
    (worker,) = workers
    toy.set_params(repo, {"train.dropout": 0.25})  # not committed: the flow's commit carries it
    (worker / "data" / "raw").mkdir(parents=True)
    (worker / "data" / "raw" / "content").write_text("left by a run with other values")
    run = server.run_flow(repo, remote="gpu")
    assert server.flow_run(run)["state_type"] == "COMPLETED", server.flow_run(run)["state"]
    assert sorted(toy.ran(repo)) == ["align", "download", "evaluate"]
    assert toy.ran(worker) == ["train@1"]
    assert server.states(run)["train@1"] in {"Cached", "Unchanged"}
    assert toy.dvc(repo, "status") == "Data and pipelines are up to date."
    assert "dropout-0.25" in (repo / "data/trained/1/content").read_text()
    assert toy.run(repo, "git", "ls-remote", "origin", "refs/heads/run/*") == ""
    assert toy.run(repo, "git", "status", "--porcelain", "--", "params.yaml") == "M params.yaml"
    end(workers.pop(worker))
    check_that_a_cpu_will_do_where_there_are_no_gpus(server, repo, clones[2], workers)


def check_that_a_cpu_will_do_where_there_are_no_gpus(
    server: Server, repo: Path, worker: Path, workers: Workers
) -> None:
    """Otherwise, stages would wait for ever. One that has nothing to compute is not even sent."""
    toy.set_params(repo, {"train.dropout": 0.5, "align.iterations": 4})
    assert soon(lambda: "READY" not in server.queues().values(), 20), server.queues()
    before = toy.ran(repo)
    process, run = server.start_flow(repo, remote="all")
    assert soon(lambda: "waits for any worker of the pool `remote`; none serves" in server.logs(run))
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(server.env, "CUDA_VISIBLE_DEVICES", "")
        workers[worker] = server.worker(worker, "remote")
    process.wait(120)
    assert server.flow_run(run)["state_type"] == "COMPLETED", server.flow_run(run)["state"]
    assert toy.ran(worker) == ["train@1", "evaluate"]
    assert toy.ran(repo) == [*before, "align"]


@pytest.mark.flows
@pytest.mark.slow
@pytest.mark.parametrize("workers", [2], indirect=True)
def test_the_end_of_a_run_and_of_a_machine(server: Server, clones: list[Path], workers: Workers) -> None:
    """First a run is cancelled: its stage must end, or it would hold a GPU for days.

    Then a worker's machine dies: its stage goes to the other worker. That is no retry, so when the stage
    fails there, it is retried once. The flow reports the stage's own error, so that nobody has to log in to
    a worker for it.
    """
    repo = clones[0]
    orchestrator = server.worker(repo, "pipelines")
    try:
        run, there = trains_remotely(server, workers)
        server.post(f"flow_runs/{run}/set_state", {"state": {"type": "CANCELLING"}})
        check_gone(there, lambda line: "prefect worker" in line or "prefect.engine" in line)
        assert soon(lambda: server.flow_run(run)["state_type"] == "CANCELLED", 40), server.flow_run(run)

        (there / "notes.jsonl").unlink()
        run, there = trains_remotely(server, workers)
        (other,) = workers.keys() - {there}
        toy.behave(other, train_1={"fails": 9})
        end(workers[there])
        check_gone(there)
        query = {"name": {"any_": ["train@1"]}, "state": {"type": {"any_": ["RUNNING"]}}}
        (remote,) = server.post("flow_runs/filter", {"flow_runs": query})
        crashed = {"type": "CRASHED", "name": "Crashed"}  # as the automation does without heartbeats
        server.post(f"flow_runs/{remote['id']}/set_state", {"state": crashed})
        assert soon(lambda: server.flow_run(run)["state_type"] == "FAILED"), server.flow_run(run)
    finally:
        end(orchestrator)
    assert [note[0] for note in toy.notes(other)] == ["train@1", "train@1"]
    state = server.flow_run(run)["state"]
    assert "toy: CUDA error: no device" in state["message"], state
    assert toy.run(repo, "git", "ls-remote", "origin", "refs/heads/run/*") == ""


def trains_remotely(server: Server, workers: Workers) -> tuple[str, Path]:
    """Start a flow; return its run once a worker trains for it, together with that worker's clone."""
    for worker in workers:
        toy.behave(worker, train_1={"seconds": 120})
    run = server.trigger(remote="gpu")
    assert soon(lambda: any(toy.notes(w) for w in workers), 90), server.log("worker")
    return run, next(worker for worker in workers if toy.notes(worker))


def push_run(repo: Path) -> str:
    """Push the workspace, with another dropout, for workers; return the commit."""
    toy.set_params(repo, {"train.dropout": 0.2})
    commit = toy.run(repo, "git", "commit-tree", workspace.snapshot(repo), "-p", "HEAD", "-m", "x")
    toy.run(repo, "git", "push", "--quiet", "origin", f"{commit}:refs/heads/run/x")
    return commit


def test_an_edited_workers_clone_is_not_overwritten(clones: list[Path]) -> None:
    """The edits may be a user's unsaved work."""
    repo, worker, _ = clones
    push_run(repo)
    (worker / "toy.py").write_text("edited")
    with pytest.raises(ValueError, match=r"has edited files: toy\.py\. A remote worker needs its own clone"):
        remote.check_out(worker, "run/x")
    assert (worker / "toy.py").read_text() == "edited"


def test_a_workers_clone_has_the_commit_of_the_run(clones: list[Path]) -> None:
    """dvc.lock of another run is no edit, and outputs are links, which cost no disk."""
    repo, worker, _ = clones
    commit = push_run(repo)
    (worker / "dvc.lock").write_text("stages: {}")
    remote.check_out(worker, "run/x")
    assert toy.run(worker, "git", "rev-parse", "HEAD") == commit
    assert load_params(worker / "params.yaml").train.dropout == 0.2
    assert toy.dvc(worker, "config", "cache.type") == "hardlink,copy"


def test_a_user_decides_how_outputs_are_linked(clones: list[Path]) -> None:
    """The cache may be on another disk, where there are no hard links."""
    repo, _, linked = clones
    commit = push_run(repo)
    toy.dvc(linked, "config", "--local", "cache.type", "symlink")
    remote.check_out(linked, "run/x")
    assert toy.run(linked, "git", "rev-parse", "HEAD") == commit
    assert load_params(linked / "params.yaml").train.dropout == 0.2
    assert toy.dvc(linked, "config", "cache.type") == "symlink"


def test_a_workers_clone_may_be_a_subfolder(repo: Path, tmp_path: Path) -> None:
    """A checkout changes the whole repository, so edits outside the subfolder count, too.

    dvc.lock is not an edit, wherever it is: DVC writes it.
    """
    shared = tmp_path / "shared.git"
    project = tmp_path / "larger" / "project"
    project.parent.mkdir()
    shutil.rmtree(repo / ".git")
    repo.rename(project)
    (project.parent / "notes.txt").write_text("committed")
    (project / "dvc.lock").write_text("stages: {}")
    toy.run(project.parent, "git", "init", "--quiet")
    toy.commit(project.parent)
    toy.run(tmp_path, "git", "clone", "--quiet", "--bare", str(project.parent), str(shared))
    toy.run(project, "git", "remote", "add", "origin", str(shared))
    toy.run(project, "git", "push", "--quiet", "origin", "HEAD:refs/heads/run/x")
    (project / "dvc.lock").write_text("stages: {} ")
    remote.check_out(project, "run/x")
    assert (project / "dvc.lock").read_text() == "stages: {}"
    (project.parent / "notes.txt").write_text("edited")
    with pytest.raises(ValueError, match=r"has edited files: notes\.txt\. A remote worker"):
        remote.check_out(project, "run/x")
