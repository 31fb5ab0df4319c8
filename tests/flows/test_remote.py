"""Stages on remote workers: clones that share only git and a DVC remote, with a real server."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from convs2s.config.load import load_params
from pipelines.flows import remote_worker, workspace
from tests.flows import toy
from tests.flows.server import FlowProcess, Server, check_gone, end, soon

pytestmark = pytest.mark.flows


@dataclass
class Machines:
    """Clones of the orchestrator and two workers, with a bare repository and a folder as remotes."""

    server: Server
    clones: list[Path]
    first: str  # the commit that all begin with
    processes: dict[Path, "subprocess.Popen[bytes]"] = field(default_factory=dict)

    def start(self, clone: Path) -> None:
        """Start the worker of a clone."""
        self.processes[clone] = self.server.worker(clone, "remote")

    def reset(self) -> None:
        """Remove everything that earlier tests have left in the clones and the remote folder."""
        for clone in self.clones:
            toy.run(clone, "git", "checkout", "--quiet", "--force", "-B", "main", self.first)
            toy.run(clone, "git", "clean", "--quiet", "--force", "-dx")
        shutil.rmtree(self.clones[0].parent / "remote", ignore_errors=True)


@pytest.fixture(scope="module")
def machines(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machines]:
    """Clones on machines with one GPU each (a fake nvidia-smi), and their workers."""
    folder = tmp_path_factory.mktemp("machines")
    repo, *workers = clones = [folder / name for name in ("home", "one", "two")]
    toy.make(repo)
    toy.run(folder, "git", "clone", "--quiet", "--bare", str(repo), "shared.git")
    toy.run(repo, "git", "remote", "add", "origin", "../shared.git")  # git takes it from the clone
    toy.dvc(repo, "remote", "add", "--default", "folder", str(folder / "remote"))
    toy.commit(repo)
    toy.run(repo, "git", "push", "--quiet", "origin", "main")
    for worker in workers:
        toy.run(folder, "git", "clone", "--quiet", str(folder / "shared.git"), str(worker))
    program = folder / "bin" / "nvidia-smi"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho 0\n")
    program.chmod(0o755)
    server.deploy(repo)
    made = Machines(server, clones, toy.run(repo, "git", "rev-parse", "HEAD"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(server.env, "PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
        for worker in workers:
            made.start(worker)
        yield made
        for process in made.processes.values():
            end(process.pid)


@pytest.fixture
def clones(machines: Machines) -> list[Path]:
    """The clones in their initial state, the orchestrator's first."""
    machines.reset()
    return machines.clones


def test_two_trainings_run_remotely_at_the_same_time(server: Server, clones: list[Path]) -> None:
    """The orchestrator ends with all outputs and a clean status, without having run either."""
    repo, *workers = clones
    toy.set_params(repo, {"train.dropout": 0.25})  # not committed: the flow's commit carries it
    for worker in workers:
        toy.behave(worker, train_1={"seconds": 12}, train_2={"seconds": 12})
        (worker / "data" / "raw").mkdir(parents=True)
        (worker / "data" / "raw" / "content").write_text("left by a run with other values")
    run = server.run_flow(repo, remote="gpu")
    assert server.flow_run(run)["state_type"] == "COMPLETED", server.flow_run(run)["state"]
    assert toy.ran(repo) == ["download", "align", "evaluate"]
    there = [toy.ran(worker) for worker in workers]
    assert sorted(there) == [["train@1"], ["train@2"]]
    spans = [[note[2] for note in toy.notes(worker)] for worker in workers]
    assert max(span[0] for span in spans) < min(span[-1] for span in spans)
    assert server.states(run)["train@1"] in {"Cached", "Unchanged"}
    assert toy.dvc(repo, "status") == "Data and pipelines are up to date."
    assert "Running stage" not in toy.dvc(repo, "repro")
    assert "dropout-0.25" in (repo / "data/trained/1/content").read_text()
    assert toy.run(repo, "git", "ls-remote", "origin", "refs/heads/run/*") == ""
    assert toy.run(repo, "git", "status", "--porcelain", "--", "params.yaml") == "M params.yaml"
    later_runs_send_only_changes(server, repo, workers)


def later_runs_send_only_changes(server: Server, repo: Path, workers: list[Path]) -> None:
    """In a clone without the data, only a new seed trains, remotely."""
    toy.dvc(repo, "push", "--run-cache")
    toy.set_params(repo, {"train.seeds": [1, 2, 3]})
    toy.commit(repo)
    fresh = repo.parent / "fresh"
    toy.run(repo.parent, "git", "clone", "--quiet", str(repo), str(fresh))
    toy.run(fresh, "git", "remote", "set-url", "origin", str(repo.parent / "shared.git"))
    toy.behave(fresh)
    run = server.run_flow(fresh, remote="gpu")
    states = server.states(run)
    assert states["evaluate"] == "Executed", server.flow_run(run)["state"]
    assert {states[name] for name in ("download", "align", "train@1", "train@2", "train@3")} <= {
        "Cached",
        "Unchanged",  # DVC has restored it with what it gives
    }
    assert toy.ran(fresh) == ["evaluate"]
    there = [name for worker in workers for name in toy.ran(worker)]
    assert sorted(there) == ["train@1", "train@2", "train@3"]


@pytest.mark.slow
def test_cancelling_reaches_the_remote_worker(server: Server, clones: list[Path]) -> None:
    """Otherwise a GPU of another machine would stay busy for days."""
    repo, *workers = clones
    flow, there = trains_remotely(server, repo, workers)
    pid = toy.notes(there)[0][3]
    server.post(f"flow_runs/{flow.run}/set_state", {"state": {"type": "CANCELLING"}})
    assert soon(lambda: not Path(f"/proc/{pid}").exists() or os.getpgid(pid) == 0, 40)
    flow.process.join(60)
    assert server.flow_run(flow.run)["state_type"] == "CANCELLED"


def test_another_worker_takes_over_from_a_killed_one_and_reports_its_failure(
    server: Server, machines: Machines, clones: list[Path]
) -> None:
    """The stage ends within ten seconds; nobody has to log in to a worker to learn why one fails."""
    repo, *workers = clones
    flow, there = trains_remotely(server, repo, workers)
    other = workers[1 - workers.index(there)]
    toy.behave(other, train_1={"fails": 9})
    machines.processes[there].kill()
    machines.processes[there].wait()
    check_gone(there)
    flow.process.join(120)
    machines.start(there)
    assert [note[:2] for note in toy.notes(other)] == [["train@1", "start 0"]]
    state = server.flow_run(flow.run)["state"]
    assert state["type"] == "FAILED" and "toy: CUDA error: no device" in state["message"], state
    assert toy.run(repo, "git", "ls-remote", "origin", "refs/heads/run/*") == ""


def trains_remotely(server: Server, repo: Path, workers: list[Path]) -> tuple[FlowProcess, Path]:
    """Start a flow; return it once a worker trains for it, together with that worker's clone."""
    for worker in workers:
        toy.behave(worker, train_1={"seconds": 120})
    flow = server.start_flow(repo, remote="gpu", targets=["train@1"])
    assert soon(lambda: any(toy.notes(w) for w in workers), 90), (server.home / "worker.log").read_text()[
        -2000:
    ]
    return flow, next(worker for worker in workers if toy.notes(worker))


def test_an_edited_workers_clone_is_not_overwritten(clones: list[Path]) -> None:
    """The edits may be a user's unsaved work."""
    repo, worker, _ = clones
    toy.set_params(repo, {"train.dropout": 0.2})
    commit = toy.run(repo, "git", "commit-tree", workspace.snapshot(repo), "-p", "HEAD", "-m", "x")
    toy.run(repo, "git", "push", "--quiet", "origin", f"{commit}:refs/heads/run/x")
    (worker / "toy.py").write_text("edited")
    with pytest.raises(ValueError, match=r"has edited files: toy\.py\. A remote worker needs its own clone"):
        remote_worker.check_out(worker, "origin", "run/x", commit)
    toy.run(worker, "git", "checkout", "toy.py")
    (worker / "dvc.lock").write_text("stages: {}")
    remote_worker.check_out(worker, "origin", "run/x", commit)
    assert load_params(worker / "params.yaml").train.dropout == 0.2
