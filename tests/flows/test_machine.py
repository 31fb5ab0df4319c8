"""`make flow` and `make flow-stop`: server and worker are started once if missing, and stopped again."""

import contextlib
import os
import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID, uuid4

import psutil
import pytest
from prefect.states import Cancelled, Completed, Failed, Running, State

from pipelines.flows import deployment, machine
from tests.flows import toy
from tests.flows.server import Server, copy_database

SERVERS = ("PREFECT_API_URL", "PREFECT_HOME", "FLOW_PORT")


def play(repo: Path, *arguments: str, **env: str) -> "subprocess.CompletedProcess[str]":
    """Run the program as the Makefile does."""
    plain = {name: value for name, value in os.environ.items() if name not in SERVERS}
    return subprocess.run(
        [sys.executable, "-m", "pipelines.flows.machine", *arguments],
        cwd=repo,
        env={**plain, **toy.IDENTITY, "PYTHONPATH": toy.python_path(repo), **env},
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )


def free_port() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


@pytest.mark.flows
def test_it_starts_server_and_worker_follows_the_run_and_stops_them(server: Server, repo: Path) -> None:
    """One command for users who have never seen Prefect."""
    port = free_port()
    (repo / ".prefect").mkdir()
    copy_database(server.home / "prefect.db", repo / ".prefect" / "prefect.db")
    toy.behave(repo, train_1={"fails": 9}, train_2={"fails": 1})
    first = play(repo, "run", FLOW_PORT=port)
    try:
        assert first.returncode == 1, first.stdout + first.stderr
        assert f"Watch it at http://127.0.0.1:{port}/v2/runs/flow-run/" in first.stdout
        password = (repo / ".prefect" / "password").read_text().strip()
        assert f"Password of its pages: {password} (kept in " in first.stdout
        logs = [(repo / ".prefect" / f"{name}.log").read_text() for name in ("server", "worker")]
        assert password.split(":")[1] not in "".join(logs)
        assert f"{'train@2':<{deployment.WIDTH}} toy: CUDA error: no device" in first.stdout
        assert "3 executed, 0 unchanged, 0 cached, 1 failed, 1 not run" in first.stdout
        toy.behave(repo)
        second = play(repo, "run", "train.dropout=0.3")  # the server that runs is found on its port
        assert second.returncode == 0, second.stdout + second.stderr
        assert "Completed: 3 executed, 0 unchanged, 2 cached, 0 failed, 0 not run" in second.stdout
        assert "Starting" not in second.stdout and password not in second.stdout
        assert f"http://127.0.0.1:{port}/v2/runs" in second.stdout
        assert "\nSaved as the DVC experiment dropout-0-3-" in second.stdout  # in the log
        assert toy.dvc(repo, "exp", "list", "--name-only").startswith("dropout-0-3-")
        assert not list((repo / ".dvc/tmp/flows").iterdir())
    finally:
        stopped = play(repo, "stop")
    assert stopped.stdout == "Stopped: worker, server.\n"
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", int(port))) != 0
    left = [p for p in psutil.process_iter(["cwd"]) if p.info["cwd"] == str(repo)]
    assert left == []
    assert play(repo, "stop").stdout == "Neither server nor worker was running.\n"


class Client:
    """Acts as the server for one run; its last log line arrives after its end."""

    def __init__(self, last: State[Any]) -> None:
        self.states: list[State[Any]] = [Running(), last, last]
        self.last = SimpleNamespace(id=uuid4(), task_run_id=None, message="BLEU 42")
        self.log = [SimpleNamespace(id=uuid4(), task_run_id=uuid4(), message="[b]epoch 1[/b]: done")]

    def read_flow_run(self, _: UUID) -> Any:
        if len(self.states) == 1:
            self.log.append(self.last)
        return SimpleNamespace(state=self.states.pop(0))

    def read_task_run(self, _: UUID) -> Any:
        return SimpleNamespace(name="train@1")

    def read_logs(self, _: Any, limit: int, offset: int, __: Any) -> list[Any]:
        return self.log[offset : offset + limit]

    def read_deployment_by_name(self, name: str) -> Any:
        return SimpleNamespace(id=name)

    def create_flow_run_from_deployment(self, deployment: str, parameters: Any) -> Any:
        assert (deployment, parameters) == ("reproduce/reproduce", {"params": {"seeds": [1]}})
        return SimpleNamespace(id=uuid4())


@pytest.mark.parametrize(("last", "status"), [(Completed(), 0), (Failed(), 1), (Cancelled(), 1)])
def test_the_log_is_printed_and_the_exit_status_is_that_of_the_run(
    last: State[Any], status: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each line once, unchanged, with its stage; even one that arrives after the end of the run."""
    monkeypatch.setattr(deployment, "POLL", 0.0)
    monkeypatch.setattr(deployment, "get_client", lambda **_: contextlib.nullcontext(Client(last)))
    begun = list[str]()
    assert deployment.trigger_and_follow("reproduce", {"seeds": [1]}, lambda: begun.append("late")) == status
    said = capsys.readouterr().out
    lines = [line.split(maxsplit=1) for line in said.splitlines()[1:3]]
    assert lines == [["train@1", "[b]epoch 1[/b]: done"], ["flow", "BLEU 42"]]
    assert f"\n{last.name}: " in said and begun == []

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(deployment, "follow", interrupt)
    assert deployment.trigger_and_follow("reproduce", {"seeds": [1]}, lambda: None) == 130
    assert "The run continues: " in capsys.readouterr().out


def test_a_user_without_a_name_gets_one(tmp_path: Path) -> None:
    """In `docker run --user 1234`, DVC would fail; without HOME, Prefect would. Here a script acts as id."""
    (tmp_path / "id").write_text("#!/bin/sh\necho 987654321; exit 1\n")  # as id -un does, with status 1
    (tmp_path / "id").chmod(0o755)
    env = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    command = ["make", "--silent", "--eval=show: ; @echo $$USER $$HOME", "show"]

    def show(**more: str) -> str:
        return subprocess.check_output(command, cwd=toy.ROOT, env=env | more, text=True)

    assert show() == "987654321 /\n"
    assert show(USER="me", HOME="/home/me") == "me /home/me\n"
    assert machine.settings("", "")["USER"] == psutil.Process().username()


def test_a_users_own_server_is_never_replaced(repo: Path) -> None:
    """PREFECT_API_URL has its address."""
    done = play(repo, "run", PREFECT_API_URL=f"http://127.0.0.1:{free_port()}/api")
    assert done.returncode == 2
    assert "no Prefect server answers at http://127.0.0.1:" in done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["run", "train.droput=0.1"], r"overrides: params\.yaml has no train\.droput"),
        (["sweep", "table5", "train.dropout=much"], r"train\.dropout: .*'much'"),
        (
            ["run", "download.folder=data/other"],
            r"download\.folder: .* found data/other, which is not a folder",
        ),
        (["sweep", "tabel4"], r"tabel4\.yaml does not exist"),
    ],
)
def test_errors_are_reported_before_anything_starts(
    words: list[str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Starting server and worker first would delay the message by half a minute."""
    monkeypatch.setattr(machine, "run", lambda *_: pytest.fail("the run has started"))
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        machine.execute(machine.parser().parse_args(words))
