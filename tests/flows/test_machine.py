"""`make flow` and `make flow-stop`: server and worker are started once if missing, and stopped again."""

import argparse
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

import httpx
import psutil
import pytest

from pipelines.flows import machine, terminal
from tests.flows import toy
from tests.flows.server import Server, copy_database, soon

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
        for path in (repo / ".prefect").iterdir():
            assert path.stat().st_mode & 0o077 == 0, path
        anybody = httpx.post(f"http://127.0.0.1:{port}/api/flow_runs/filter", json={})
        assert anybody.status_code in {401, 403}
        assert f"{'train@2':<{terminal.NAME}} toy: CUDA error: no device" in first.stdout
        assert "3 executed, 0 unchanged, 0 cached, 1 failed, 1 not run" in first.stdout
        toy.behave(repo)
        second = play(repo, "run", "train.dropout=0.3")  # the server that runs is found on its port
        assert second.returncode == 0, second.stdout + second.stderr
        assert "Completed: 3 executed, 0 unchanged, 2 cached, 0 failed, 0 not run" in second.stdout
        assert "Starting" not in second.stdout and password not in second.stdout
        assert f"http://127.0.0.1:{port}/v2/runs" in second.stdout
        assert "\nSaved as the DVC experiment dropout-0-3-" in second.stdout  # in the log
        assert toy.dvc(repo, "exp", "list", "--name-only").startswith("dropout-0-3-")
    finally:
        stopped = play(repo, "stop")
    assert stopped.stdout == "Stopped: worker, server.\n"
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", int(port))) != 0
    left = [p for p in psutil.process_iter(["cwd"]) if p.info["cwd"] == str(repo)]
    assert left == []
    assert play(repo, "stop").stdout == "Neither server nor worker was running.\n"


@pytest.mark.flows
def test_a_killed_server_is_restarted(server: Server, repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run goes on meanwhile; another make flow could not join it."""
    port = free_port()
    (repo / ".prefect").mkdir()
    copy_database(server.home / "prefect.db", repo / ".prefect" / "prefect.db")
    toy.behave(repo, train_1={"seconds": 25})

    def kill() -> None:
        assert soon(lambda: "train@1" in [note[0] for note in toy.notes(repo)])
        found = machine.running("server")
        assert found is not None
        found.kill()

    monkeypatch.setattr(machine, "ROOT", repo)
    killer = threading.Thread(target=kill)
    killer.start()
    try:
        done = play(repo, "run", FLOW_PORT=port)
    finally:
        killer.join()
        play(repo, "stop")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"The Prefect server at http://127.0.0.1:{port}/api does not answer. Stages go on" in done.stdout
    assert done.stdout.count(f"Starting the Prefect server on 127.0.0.1:{port} ...") == 2
    assert "The Prefect server answers again." in done.stdout


def test_after_flow_stop_no_server_is_restarted(
    repo: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It would have to be stopped again; nor is a server that make flow did not start."""
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:1/api")
    monkeypatch.setattr(machine, "HOME", repo)
    monkeypatch.setattr(machine, "running", lambda _: None)
    monkeypatch.setattr(machine, "start_server", pytest.fail)
    (repo / "worker.log").write_text("ended by SIGTERM")
    machine.restart_server(named=True, first=True)
    assert capsys.readouterr().out.endswith("1/api does not answer. Stages go on and report once it does.\n")
    with pytest.raises(RuntimeError, match=r"the worker has exited; .*\nended by SIGTERM"):
        machine.restart_server(named=False, first=False)


def test_a_user_without_a_name_gets_one(tmp_path: Path) -> None:
    """In `docker run --user 1234`, DVC would fail; without HOME, Prefect would. Here a script acts as id."""
    (tmp_path / "id").write_text("#!/bin/sh\necho 987654321; exit 1\n")  # as id -un does, with status 1
    (tmp_path / "id").chmod(0o755)
    env = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    show = ["make", "--silent", "--eval=show: ; @echo $$USER $$HOME", "show"]

    def shown(**more: str) -> str:
        return subprocess.check_output(show, cwd=toy.ROOT, env=env | more, text=True)

    assert shown() == "987654321 /\n"
    assert shown(USER="me", HOME="/home/me") == "me /home/me\n"
    assert machine.DEFAULTS["USER"] == psutil.Process().username()


def test_a_taken_port_is_reported(repo: Path) -> None:
    """The port may belong to a program that is not a Prefect server."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = str(other.getsockname()[1])
        done = play(repo, "run", FLOW_PORT=port)
    assert done.returncode == 2
    assert (
        f"port {port} is taken (Address already in use), perhaps by the Prefect server of another clone. "
        f"Choose another: make flow FLOW_PORT={int(port) + 1}, or" in done.stderr
    )


def test_a_users_own_server_is_never_replaced(repo: Path) -> None:
    """PREFECT_API_URL has its address."""
    done = play(repo, "run", PREFECT_API_URL=f"http://127.0.0.1:{free_port()}/api")
    assert done.returncode == 2
    assert "no Prefect server answers at http://127.0.0.1:" in done.stderr


def test_a_missing_table_is_reported_before_anything_starts(repo: Path) -> None:
    """Starting server and worker first would delay the message by half a minute."""
    (repo / "experiments" / "tables").mkdir(parents=True)
    (repo / "experiments" / "tables" / "table4.yaml").write_text("rows: 3\n", encoding="utf-8")
    missing = play(repo, "sweep", "tabel4", "train.seeds=[1]")
    assert missing.returncode == 2
    assert "tabel4.yaml does not exist: expected the name of a file there: table4" in missing.stderr
    assert "table4.yaml: " in play(repo, "sweep", "table4").stderr
    assert not (repo / ".prefect").exists()


def test_overrides_are_parsed_like_params_yaml() -> None:
    """1e-4 is a number."""
    words = ["run", "train.seeds=[1, 2]", "train.learning_rate=1e-4", "package.name=a b"]
    assert dict(machine.parser().parse_args(words).overrides) == {
        "train.seeds": [1, 2],
        "train.learning_rate": 1e-4,
        "package.name": "a b",
    }
    with pytest.raises(argparse.ArgumentTypeError, match=r"expected NAME=VALUE, such as .*, found"):
        machine.parse_override("train.dropout")


@pytest.mark.flows
def test_a_reused_process_id_is_not_taken_for_our_server(repo: Path, server: Server) -> None:
    """After a reboot another program may have it, which `make flow-stop` must not kill."""
    assert server.process is not None
    (repo / ".prefect").mkdir()
    (repo / ".prefect" / "server.pid").write_text(str(server.process.pid))
    assert play(repo, "stop").stdout == "Neither server nor worker was running.\n"
    assert machine.answers(server.env["PREFECT_API_URL"])


def test_invalid_values_are_reported_before_anything_starts(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Starting server and worker first would delay the message by half a minute."""
    monkeypatch.setattr(machine, "ROOT", repo)
    monkeypatch.setattr(machine, "run", lambda *_: pytest.fail("the run has started"))
    for word, message in (
        ("train.droput=0.1", r"overrides: params\.yaml has no train\.droput"),
        ("train.dropout=much", r"train\.dropout: found 'much'"),
        ("download.folder=data/other", r"download\.folder is data/other, which is not a folder"),
    ):
        for command in (["run"], ["sweep", "table5"]):
            with pytest.raises((ValueError, FileNotFoundError), match=message):
                machine.execute(machine.parser().parse_args([*command, word]))
