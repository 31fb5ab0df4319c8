"""Access to the Prefect server: attacks by other users and foreign web pages, and the password file."""

import json
from pathlib import Path

import httpx
import psutil
import pytest
from prefect.exceptions import ParameterTypeError
from pydantic import ValidationError
from websockets.exceptions import ConnectionClosedError
from websockets.sync.client import connect

from pipelines.flows import workspace
from pipelines.flows.remote_worker import run_stage
from tests.flows.server import Server
from tests.flows.test_machine import play


@pytest.mark.flows
def test_nobody_but_the_owner_runs_anything(server: Server, repo: Path) -> None:
    """Without a password, any local user and any web page could have a worker execute a command."""
    server.deploy(repo)
    client = server.client
    deployment = client.get("deployments/name/reproduce/reproduce").raise_for_status().json()["id"]
    create = f"deployments/{deployment}/create_flow_run"
    before = server.known()

    plain = httpx.Client(base_url=client.base_url)
    token = client.get("csrf-token", params={"client": "tests"}).json()["token"]
    csrf = {"Prefect-Csrf-Client": "tests", "Prefect-Csrf-Token": token}
    run = json.dumps({"state": {"type": "SCHEDULED"}})
    for login in [("", ""), ("convs2s", ""), ("convs2s", "wrong"), ("admin", "pass")]:
        assert plain.get(f"deployments/{deployment}", auth=login).status_code == 401
        assert plain.post(create, content=run, headers=csrf, auth=login).status_code == 401
    for path in (
        "admin/settings",
        "health/../deployments/name/reproduce/reproduce",
        "health/..%2fadmin/settings",
    ):
        assert plain.get(path).status_code in {401, 404}, path
    assert server.process is not None
    assert server.auth.split(":")[1] not in " ".join(psutil.Process(server.process.pid).cmdline())

    # A page from elsewhere, in the owner's browser; a request without Content-Type needs no preflight.
    foreign = {"Origin": "http://evil.example"}
    wants = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type"}
    refused = client.options(create, headers=foreign | wants)
    assert refused.status_code == 400 and "access-control-allow-origin" not in refused.headers
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
    for variables in ({"command": "touch owned"}, {"env": {"PYTHONPATH": "/tmp"}}, {"working_dir": "/tmp"}):
        answer = client.post(create, json={"job_variables": variables, "state": {"type": "SCHEDULED"}})
        assert (answer.status_code, "Additional properties" in answer.text) == (422, True), variables
    assert server.known() == before

    wrong = play(repo, "worker", "remote", PREFECT_API_URL=server.address, PREFECT_API_AUTH_STRING="a:b")
    assert wrong.returncode == 2
    assert "rejects the password: expected the one in .prefect/password of the clone" in wrong.stderr


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("stage", ["--force", "../x"]),
        ("branch", ["main", "run/x:refs/heads/main"]),
        ("commit", ["HEAD"]),
        ("git_remote", ["--upload-pack=touch owned", "ext::sh -c touch% owned"]),
        ("seconds", [-1.0]),
    ],
)
def test_a_remote_run_accepts_only_plain_names(name: str, values: list[object]) -> None:
    """In place of a remote's name, git accepts options and even programs to run."""
    order = {"stage": "train@1", "branch": "run/0-a/train@1-0b", "commit": "0" * 40, "git_remote": "origin"}
    run_stage.validate_parameters(order)
    for value in values:
        with pytest.raises((ValidationError, ParameterTypeError), match=name):
            run_stage.validate_parameters({**order, name: value})


def test_only_the_owner_knows_the_password(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody else may enter the folder, and a password that others may have read is refused, as by ssh."""
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
    workspace.PASSWORD.chmod(0o640)
    with pytest.raises(RuntimeError, match="password: expected permissions 600, found 640"):
        workspace.read_password()
