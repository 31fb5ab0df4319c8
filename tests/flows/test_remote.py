"""Stages on remote workers: clones that share only git and a DVC remote, with a real server."""

import contextlib
import logging
import shutil
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
from prefect.client.schemas.objects import FlowRun, WorkQueue, WorkQueueStatus
from prefect.states import Cancelled, Completed, Crashed, Failed, Running, State

from convs2s.config.load import load_params
from pipelines.flows import remote, workspace
from pipelines.flows.dvc_stage import GuardedRunner, StageEnded, StageFailed, Stop
from pipelines.flows.graph import Stage
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
    assert soon(lambda: "waits for any worker of the pool `remote`; none is running" in server.logs(run))
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(server.env, "CUDA_VISIBLE_DEVICES", "")
        workers[worker] = server.worker(worker, "remote")
    process.wait()
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


class Answers:
    """A Prefect client that gives these answers, one by one; after the last, the flow run is stopped.

    The answers are states of a flow run that began, or the names of queues that workers serve.
    """

    def __init__(self, stop: Stop, answers: list[Any]) -> None:
        self.stop = stop
        self.answers = answers
        self.told = list[State[Any]]()

    def next(self) -> Any:
        if len(self.answers) == 1:
            self.stop.set()
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def read_flow_run(self, run: UUID) -> FlowRun:
        return FlowRun(id=run, flow_id=run, state=self.next())

    def set_flow_run_state(self, _: UUID, state: State[Any]) -> None:
        self.told.append(state)

    def read_work_queues(self, work_pool_name: str) -> list[WorkQueue]:
        assert work_pool_name == "remote"
        served = self.next()
        names = ("gpus-0", "gpus-1", "gpus-2")
        states = {True: WorkQueueStatus.READY, False: WorkQueueStatus.NOT_READY}
        return [WorkQueue(name=name, work_pool_id=uuid4(), status=states[name in served]) for name in names]


@pytest.fixture
def polls(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The waits between questions, of which none takes any time."""
    waits = list[float]()
    monkeypatch.setattr(remote, "time", SimpleNamespace(sleep=waits.append))
    monkeypatch.setattr(remote, "get_run_logger", lambda: logging.getLogger("tests"))
    return waits


def ask(monkeypatch: pytest.MonkeyPatch, *answers: Any) -> Answers:
    """Have the code of the flow get these answers from the server."""
    client = Answers(Stop(), list(answers))
    monkeypatch.setattr(remote.cancellation, "client_without_retries", lambda: contextlib.nullcontext(client))
    return client


def stage_with(gpus: int) -> Stage:
    return Stage("train@1", "python", frozenset(), gpus, 1.0, (), "x", toy.ROOT)


NOW: Any = datetime.now(UTC)
AWAY = httpx.ConnectError("refused"), RuntimeError("the client is closed")


@pytest.mark.parametrize(
    ("gpus", "answers", "queue", "waits"),
    [
        pytest.param(0, [], "gpus-0", 0, id="a CPU stage needs no answer"),
        pytest.param(1, [["gpus-0", "gpus-1"]], "gpus-1", 0, id="its GPU"),
        pytest.param(2, [["gpus-0", "gpus-1"]], "gpus-2", 0, id="more GPUs than now serve: it waits there"),
        pytest.param(1, [["gpus-0"]], "gpus-0", 0, id="a CPU will do where no GPU serves"),
        pytest.param(1, [[], [], ["gpus-0"]], "gpus-0", 2, id="any worker is waited for"),
        pytest.param(1, [*AWAY, ["gpus-1"]], "gpus-1", 2, id="the server is away for a while"),
    ],
)
def test_a_stage_goes_to_workers_that_serve(
    gpus: int, answers: list[Any], queue: str, waits: int, polls: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a queue that no worker serves, it would wait for ever."""
    client = ask(monkeypatch, *answers, [])
    assert remote.choose_queue(stage_with(gpus), client.stop) == queue
    assert polls == [remote.POLL] * waits


def test_a_stage_does_not_wait_for_workers_once_its_run_is_cancelled(
    polls: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody would end it before a worker comes."""
    client = ask(monkeypatch, [], [])
    with pytest.raises(StageEnded, match="was not started"):
        remote.choose_queue(stage_with(1), client.stop)
    assert len(polls) == 2


PATIENCE = int(remote.CORRECTED / remote.POLL) + 1  # answers


@pytest.mark.parametrize(
    ("answers", "state"),
    [
        pytest.param([Running(), *AWAY, Completed()], "Completed", id="it ends, whatever came before"),
        pytest.param([Crashed(), Running(), Completed()], "Completed", id="a crash that is corrected"),
        pytest.param(
            [*[Crashed()] * (PATIENCE - 1), Running(), *[Crashed()] * (PATIENCE - 1), Failed()],
            "Failed",
            id="only crashes in a row count",
        ),
        pytest.param([Crashed()] * PATIENCE, "Crashed", id="its worker has died"),
    ],
)
def test_a_crash_counts_if_the_run_does_not_say_that_it_is_alive(
    answers: list[Any], state: str, polls: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the server is away it hears of no run; a second worker would then train the same once more."""
    client = ask(monkeypatch, *answers, Running())
    ended = remote.wait(uuid4(), client.stop)
    assert ended.state is not None and ended.state.name == state
    assert len(polls) == len(answers) - 1
    assert client.told == []


def test_a_remote_run_is_cancelled_with_its_flow(polls: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    """It would hold a GPU for days."""
    client = ask(monkeypatch, Running(), Running())
    with pytest.raises(StageEnded, match="because the flow run was"):
        remote.wait(uuid4(), client.stop)
    assert [state.name for state in client.told] == ["Cancelling"]
    assert len(polls) == 1


@pytest.mark.parametrize(
    ("ends", "error"),
    [
        pytest.param([(Completed(), True)], None, id="success"),
        pytest.param([(Failed(message="toy"), True)], (StageFailed, "ended as Failed .*: toy"), id="failure"),
        pytest.param(
            [(Cancelled(message="toy"), True)], (StageEnded, "was cancelled .*: toy"), id="cancelled"
        ),
        pytest.param([(Crashed(), True), (Crashed(), True), (Completed(), True)], None, id="two workers die"),
        pytest.param([(Crashed(message="toy"), False)], (StageFailed, "ended as Crashed"), id="never began"),
    ],
)
def test_another_worker_gets_the_stage_of_one_that_has_died(
    ends: list[tuple[State[Any], bool]],
    error: tuple[type[Exception], str] | None,
    polls: list[float],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing else is tried again here, and the branch with the stage's inputs never stays on the remote."""
    made = [FlowRun(flow_id=uuid4(), state=state, start_time=NOW if began else None) for state, began in ends]
    begun, deleted = iter(made), list[str]()
    runs = {run.id: run for run in made}
    monkeypatch.setattr(remote, "publish", lambda *_: "run/x")
    monkeypatch.setattr(remote, "choose_queue", lambda *_: "gpus-1")
    monkeypatch.setattr(remote, "runtime", SimpleNamespace(flow_run=SimpleNamespace(name="main")))
    monkeypatch.setattr(remote, "run_deployment", lambda *_, **__: next(begun))
    monkeypatch.setattr(remote, "wait", lambda run, _: runs[run])
    monkeypatch.setattr(remote, "git", lambda _, *arguments: deleted.append(arguments[-1]))
    runner = GuardedRunner(toy.ROOT, {}, 1.0, Stop(), print)
    with pytest.raises(error[0], match=error[1]) if error else contextlib.nullcontext():
        remote.run_on_worker(stage_with(1), runner)
    assert next(begun, None) is None
    assert deleted == ["run/x"]


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
