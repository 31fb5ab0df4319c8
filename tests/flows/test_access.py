"""Access to the Prefect server: attacks by other users and foreign web pages, and the password file."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
from prefect.exceptions import ParameterTypeError
from pydantic import ValidationError
from websockets.exceptions import ConnectionClosedError
from websockets.sync.client import connect

from pipelines.flows import access
from pipelines.flows.remote_worker import run_stage
from tests.flows.server import Server
from tests.flows.test_machine import play

# What another user of the machine can try; prints what came of it. Only the standard library, for that user
# need not be able to read our packages.
ATTACK = """
import base64, http.client, json, pathlib, sys
port, deployment, pid = sys.argv[1:]
run = json.dumps({"state": {"type": "SCHEDULED"}, "job_variables": {"command": "touch owned"}})
def ask(method, path, body=None, login=None, **headers):
    if login is not None:
        headers["Authorization"] = "Basic " + base64.b64encode(login.encode()).decode()
    connection = http.client.HTTPConnection("127.0.0.1", int(port))
    connection.request(method, path, body, headers)
    answer = connection.getresponse()
    return [answer.status, answer.read().decode(errors="replace")[:200]]
def look(path):
    try:
        return path.read_bytes().decode(errors="replace")
    except OSError as error:
        return type(error).__name__
create = f"/api/deployments/{deployment}/create_flow_run"
json_type = {"Content-Type": "application/json"}
logins = [None, "", ":", "convs2s:", "convs2s:wrong", "admin:pass", "None"]
paths = ["/api/admin/settings", "/api/health/../deployments/name/reproduce/reproduce", "//api/admin/settings",
         "/api/health/..%2fadmin/settings", "/../../../../../../../../etc/passwd",
         "/" + "%2e%2e/" * 9 + "etc/passwd"]
print(json.dumps({
    "runs": [ask("POST", create, run, login, **json_type) for login in logins],
    "logins": [ask("GET", f"/api/deployments/{deployment}", login=login) for login in logins],
    "paths": [ask("GET", path) for path in paths],
    "environment": look(pathlib.Path("/proc") / pid / "environ"),
    "commands": [look(path) for path in pathlib.Path("/proc").glob("[0-9]*/cmdline")],
}))
"""


def attack(server: Server, deployment: str) -> Any:
    """Attack a server as the user nobody or, if we may not switch users, as ourselves."""
    assert server.process is not None
    nobody = {"user": 65534, "group": 65534, "extra_groups": []} if os.getuid() == 0 else {}
    python = shutil.which("python3", path=os.defpath) or sys.executable
    command = [python, "-c", ATTACK, str(server.port), deployment, str(server.process.pid)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd="/", **nobody)  # type: ignore[call-overload]
    return json.loads(done.stdout)


@pytest.mark.flows
def test_nobody_but_the_owner_runs_anything(server: Server, repo: Path) -> None:
    """Without a password, any local user and any web page could have a worker execute a command."""
    server.deploy(repo)
    client = server.client()
    deployment = client.get("deployments/name/reproduce/reproduce").raise_for_status().json()["id"]
    create = f"deployments/{deployment}/create_flow_run"
    before = server.known()

    found = attack(server, deployment)
    assert {status for status, _ in found["runs"]} <= {401, 403}, found["runs"]  # no CSRF token, either
    assert {status for status, _ in found["logins"]} == {401}
    assert {status for status, _ in found["paths"]} <= {401, 404}, found["paths"]
    secret = server.auth.split(":")[1]
    assert len(found["commands"]) > 1 and not any(secret in command for command in found["commands"])
    assert os.getuid() != 0 or found["environment"] == "PermissionError"

    # A page from elsewhere, in the owner's browser; a request without Content-Type needs no preflight.
    foreign = {"Origin": "http://evil.example"}
    preflight = foreign | {
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "content-type",
    }
    refused = client.options(create, headers=preflight)
    assert refused.status_code == 400 and "access-control-allow-origin" not in refused.headers
    run = json.dumps({"state": {"type": "SCHEDULED"}})
    plain = httpx.Client(base_url=client.base_url)
    login = httpx.BasicAuth(*server.auth.split(":"))
    assert plain.post(create, content=run, headers=foreign, auth=login).status_code == 403
    assert plain.post(create, content=run, headers=server.csrf).status_code == 401
    with (
        pytest.raises(ConnectionClosedError, match="Invalid token"),
        connect(f"ws://127.0.0.1:{server.port}/api/logs/out", subprotocols=["prefect"]) as socket,  # type: ignore[list-item]
    ):
        socket.send('{"type": "auth", "token": "wrong"}')
        socket.recv(timeout=10)

    # Whoever has the password starts our flows, in our folder, and nothing else.
    for variables in ({"command": "touch owned"}, {"env": {"PYTHONPATH": "/tmp"}}, {"working_dir": "/tmp"}):
        answer = client.post(create, json={"job_variables": variables, "state": {"type": "SCHEDULED"}})
        assert (answer.status_code, "Additional properties" in answer.text) == (422, True), variables
    assert server.known() == before

    address = str(client.base_url)
    wrong = play(repo, "worker", "remote", PREFECT_API_URL=address, PREFECT_API_AUTH_STRING="a:b")
    assert wrong.returncode == 2
    assert "rejects the password: expected the one in .prefect/password of the clone" in wrong.stderr


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("stage", "--force"),
        ("stage", "../x"),
        ("branch", "main"),
        ("branch", "run/x:refs/heads/main"),
        ("commit", "HEAD"),
        ("git_remote", "--upload-pack=touch owned"),
        ("git_remote", "ext::sh -c touch% owned"),
        ("seconds", -1.0),
    ],
)
def test_a_remote_run_accepts_only_plain_names(name: str, value: object) -> None:
    """In place of a remote's name, git accepts options and even programs to run."""
    order = {"stage": "train@1", "branch": "run/0-a/train@1-0b", "commit": "0" * 40, "git_remote": "origin"}
    run_stage.validate_parameters(order)
    with pytest.raises((ValidationError, ParameterTypeError), match=name):
        run_stage.validate_parameters({**order, name: value})


def test_only_the_owner_knows_the_password(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody else may enter the folder, and a password that others may have read is refused, as by ssh."""
    home = tmp_path / ".prefect"
    monkeypatch.setattr(access, "HOME", home)
    monkeypatch.setattr(access, "PASSWORD", home / "password")
    assert access.read_password() == ""
    home.mkdir(mode=0o755)
    access.make_home()
    assert home.stat().st_mode & 0o777 == 0o700
    password = access.make_password()
    assert access.make_password() == access.read_password() == password
    assert len(password) == len("convs2s:") + 32
    access.PASSWORD.chmod(0o640)
    with pytest.raises(RuntimeError, match="password: expected permissions 600, found 640"):
        access.read_password()
    access.PASSWORD.chmod(0o600)
    access.PASSWORD.write_text("convs2s:\n")
    with pytest.raises(RuntimeError, match=r"expected user:password, found something else\. Remove it"):
        access.make_password()
