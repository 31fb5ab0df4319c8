"""`make flow` and `make flow-stop`: server and worker are started once if missing, and stopped again."""

import os
import shlex
import socket
import subprocess
import sys
from pathlib import Path
from unittest import mock

import psutil
import pytest

from pipelines.flows import deployment, machine, workspace
from tests.flows import toy
from tests.flows.server import free_port

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


@pytest.mark.flows
def test_it_starts_server_and_worker_follows_the_run_and_stops_them(repo: Path) -> None:
    """One command for users who have never seen Prefect."""
    port = str(free_port())
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
        assert "Failed: 3 Executed, 1 Failed, 1 NotReady" in first.stdout
        toy.behave(repo)
        second = play(repo, "run", "train.dropout=0.3")  # the server that runs is found on its port
        assert second.returncode == 0, second.stdout + second.stderr
        assert "Completed: 2 Cached, 3 Executed" in second.stdout
        assert "Starting" not in second.stdout and password not in second.stdout
        assert f"http://127.0.0.1:{port}/v2/runs" in second.stdout
        assert toy.dvc(repo, "exp", "list", "--name-only").startswith("dropout-0-3-")
        assert not list((repo / ".dvc/tmp/flows").iterdir())
    finally:
        stopped = play(repo, "stop")
    assert stopped.stdout == "Stopped.\n"
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", int(port))) != 0
    left = [p for p in psutil.process_iter(["cwd"]) if p.info["cwd"] == str(repo)]
    assert left == []
    assert play(repo, "stop").stdout == "Neither server nor worker was running.\n"


def test_a_user_without_a_name_gets_one(tmp_path: Path) -> None:
    """In `docker run --user 1234`, DVC would fail; without HOME, Prefect would. Here a script acts as id."""
    toy.write_program(tmp_path / "id", "echo 987654321; exit 1")  # as id -un does, with status 1
    env = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    command = ["make", "--silent", "--eval=show: ; @echo $$USER $$HOME", "show"]
    for more, expected in (({}, "987654321 /\n"), ({"USER": "me", "HOME": "/home/me"}, "me /home/me\n")):
        assert subprocess.check_output(command, cwd=toy.ROOT, env=env | more, text=True) == expected
    assert machine.settings("", "")["USER"] == psutil.Process().username()


def test_a_users_own_server_is_never_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """PREFECT_API_URL has its address."""
    monkeypatch.setattr(workspace, "HOME", tmp_path / ".prefect")
    monkeypatch.setattr(machine, "start_server", lambda _: pytest.fail("another server was started"))
    address = f"http://127.0.0.1:{free_port()}/api"
    with (
        mock.patch.dict(os.environ, PREFECT_API_URL=address),
        pytest.raises(RuntimeError, match=f"{address}: expected a Prefect server .* found status 0"),
    ):
        machine.use_server(start_missing=True)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("run train.droput=0.1", r"train\.droput: unknown key.*did you mean dropout\?"),
        ("sweep table5 train.dropout=much", r"train\.dropout: .*'much'"),
        ("run download.folder=data/other", r"folder: .* found data/other, which is not a folder"),
        ("sweep tabel4", r"expected a table, .*found 'tabel4'; did you mean table4\?"),
        ("sweep '' train.dropout=0.1", r"found ''; known here: figure2, table4"),
    ],
)
def test_errors_are_reported_before_anything_starts(
    words: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Starting server and worker first would delay the message by half a minute."""
    monkeypatch.setattr(machine, "run", lambda *_: pytest.fail("the run has started"))
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        machine.execute(machine.parser().parse_args(shlex.split(words)))
