"""Access to the Prefect server: attacks by other users and foreign web pages, and the password file."""

import json
from pathlib import Path

import httpx
import psutil
import pytest
from websockets.exceptions import ConnectionClosedError
from websockets.sync.client import connect

from pipelines.flows import workspace
from tests.flows.server import Server
from tests.flows.test_machine import play


@pytest.mark.flows
def test_nobody_but_the_owner_runs_anything(server: Server, repo: Path) -> None:
    """Without a password, any local user and any web page could have a worker execute a command."""
    server.deploy(repo)
    client = server.client
    deployment = client.get("deployments/name/reproduce/reproduce").raise_for_status().json()["id"]
    create = f"deployments/{deployment}/create_flow_run"
    before = server.runs()

    plain = httpx.Client(base_url=client.base_url)
    token = client.get("csrf-token", params={"client": "tests"}).json()["token"]
    csrf = {"Prefect-Csrf-Client": "tests", "Prefect-Csrf-Token": token}
    run = json.dumps({"state": {"type": "SCHEDULED"}})
    for login in [("", ""), ("convs2s", "wrong")]:
        assert plain.get(f"deployments/{deployment}", auth=login).status_code == 401
        assert plain.post(create, content=run, headers=csrf, auth=login).status_code == 401
    assert plain.get("admin/settings").status_code == 401
    assert server.process is not None
    assert server.auth.split(":")[1] not in " ".join(psutil.Process(server.process.pid).cmdline())

    # A page from elsewhere, in the owner's browser; a request without Content-Type needs no preflight.
    foreign = {"Origin": "http://evil.example"}
    wants = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type"}
    preflight = client.options(create, headers=foreign | wants)
    assert preflight.status_code == 400 and "access-control-allow-origin" not in preflight.headers
    name, password = server.auth.split(":")
    assert plain.post(create, content=run, headers=foreign, auth=(name, password)).status_code == 403
    assert plain.post(create, content=run, headers=csrf).status_code == 401
    with (
        pytest.raises(ConnectionClosedError, match="Invalid token"),
        connect(f"{server.address.replace('http', 'ws')}/logs/out", subprotocols=["prefect"]) as socket,  # type: ignore[list-item]
    ):
        socket.send('{"type": "auth", "token": "wrong"}')
        socket.recv(timeout=10)

    # Whoever has the password starts our flows, in our folder, and nothing else.
    command = {"job_variables": {"command": "touch owned"}, "state": {"type": "SCHEDULED"}}
    assert client.post(create, json=command).status_code == 422
    assert server.runs() == before

    wrong = play(repo, "worker", "remote", PREFECT_API_URL=server.address, PREFECT_API_AUTH_STRING="a:b")
    assert wrong.returncode == 2
    assert (
        "expected a Prefect server that accepts the password in .prefect/password, found status 401"
        in wrong.stderr
    )


def test_only_the_owner_knows_the_password(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody else may enter the folder or read the file."""
    home = tmp_path / ".prefect"
    monkeypatch.setattr(workspace, "HOME", home)
    monkeypatch.setattr(workspace, "PASSWORD", home / "password")
    assert workspace.read_password() == ""
    home.mkdir(mode=0o755)
    workspace.make_home()
    assert home.stat().st_mode & 0o777 == 0o700
    password = workspace.make_password()
    assert workspace.make_password() == workspace.read_password() == password
    assert len(password) == len("convs2s:") + 32
    assert workspace.PASSWORD.stat().st_mode & 0o777 == 0o600
