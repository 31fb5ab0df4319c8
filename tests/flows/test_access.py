"""Access to the Prefect server: attacks by other users and foreign web pages, and the password file."""

import functools
import json
import os
import shutil
import socket
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from prefect.exceptions import ParameterTypeError
from pydantic import ValidationError
from websockets.exceptions import ConnectionClosedError
from websockets.sync.client import connect

from pipelines.flows import access, machine
from pipelines.flows.remote_worker import run_stage
from tests.flows.server import Server, soon
from tests.flows.test_machine import play

pytestmark = pytest.mark.fault("security")

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
logins = [None, "", ":", "convs2s", "convs2s:", "convs2s:wrong", "admin:pass", "None"]
paths = ["/api/admin/settings", "/api/health/../deployments/name/reproduce/reproduce", "//api/admin/settings",
         "/api//admin/settings", "/api/health/..%2fadmin/settings", "/api/admin/settings?/health",
         "/../../../../../../../../etc/passwd", "/assets/" + "..%2f" * 9 + "etc/passwd",
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
    done = subprocess.run(  # type: ignore[call-overload]
        [
            shutil.which("python3", path=os.defpath) or sys.executable,
            *("-c", ATTACK, str(server.port), deployment, str(server.process.pid)),
        ],
        check=True,
        capture_output=True,
        text=True,
        cwd="/",
        **nobody,
    )
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
    foreign, ours = (
        {"Origin": origin} for origin in ("http://evil.example", f"http://127.0.0.1:{server.port}")
    )
    wanted = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type"}
    refused = client.options(create, headers=foreign | wanted)
    assert refused.status_code == 400 and "access-control-allow-origin" not in refused.headers
    allowed = client.options(create, headers=ours | wanted).headers["access-control-allow-origin"]
    assert allowed == ours["Origin"]
    policy = httpx.get(f"{ours['Origin']}/v2/").headers["content-security-policy"]
    assert policy == "connect-src 'self'"  # the pages' statistics would call another host
    run = json.dumps({"state": {"type": "SCHEDULED"}})
    plain = httpx.Client(base_url=client.base_url)
    assert plain.post(create, content=run, headers=foreign).status_code == 403
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
    for variables in JOB_VARIABLES:
        answer = client.post(create, json={"job_variables": variables, "state": {"type": "SCHEDULED"}})
        assert (answer.status_code, "Additional properties" in answer.text) == (422, True), variables
    assert server.known() == before

    wrong = play(
        repo, "worker", "remote", PREFECT_API_URL=str(client.base_url), PREFECT_API_AUTH_STRING="a:b"
    )
    assert wrong.returncode == 2
    assert "rejects the password. Wanted the one in .prefect/password of the clone" in wrong.stderr


@pytest.mark.flows
@pytest.mark.parametrize("base", ["/", "/api/"])
@pytest.mark.parametrize("path", ["docs", "docs/oauth2-redirect", "redoc", "openapi.json"])
def test_fastapis_own_pages_are_gone(server: Server, base: str, path: str) -> None:
    """They load scripts from another host, and most need no password."""
    answer = server.client().get(f"http://127.0.0.1:{server.port}{base}{path}")
    assert answer.status_code == 404, answer.text[:200]


JOB_VARIABLES: list[dict[str, Any]] = [
    {"command": "touch owned"},
    {"env": {"PYTHONPATH": "/tmp"}},
    {"env.PYTHONPATH": "/tmp"},
    {"working_dir": "/tmp"},
    {"name": "x"},
    {"labels": {"x": "y"}},
    {"stream_output": False},
]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("stage", "--force"),
        ("stage", "../x"),
        ("branch", "main"),
        ("branch", "run/x:refs/heads/main"),
        ("branch", "run/../main"),
        ("commit", "--detach"),
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


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder .prefect of a clone."""
    monkeypatch.setattr(access, "HOME", tmp_path / ".prefect")
    monkeypatch.setattr(access, "PASSWORD", tmp_path / ".prefect" / "password")
    (tmp_path / ".prefect").mkdir(mode=0o755)
    (tmp_path / ".prefect" / "server.log").write_text("kept")
    access.make_home()
    return tmp_path / ".prefect"


def test_only_the_owner_can_read_the_folder(home: Path) -> None:
    """The database holds all parameters and logs; earlier versions left the folder open to everyone."""
    access.make_password()
    modes = {path.name: path.stat().st_mode & 0o777 for path in (home, *home.iterdir())}
    assert modes.pop(".prefect") == 0o700
    assert modes == dict.fromkeys(["password", "prefect.db", "server.log", "worker.log"], 0o600)
    assert (home / "server.log").read_text() == "kept"


def test_concurrent_calls_create_one_password(home: Path) -> None:
    """Otherwise one of two concurrent `make flow` would use a password that the server does not know."""
    with ProcessPoolExecutor(4, mp_context=get_context("fork")) as pool:
        made = {future.result() for future in [pool.submit(access.make_password) for _ in range(8)]}
    assert made == {access.read_password()}
    assert len(made.pop()) == len("convs2s:") + 32
    assert not list(home.glob("tmp*"))


def test_a_password_readable_by_others_is_refused(home: Path) -> None:
    """Other users may have read it; ssh refuses such keys, too."""
    assert access.read_password() == ""
    access.make_password()
    access.PASSWORD.chmod(0o640)
    with pytest.raises(RuntimeError, match=r"password: found permissions 640, so .* Wanted 600: remove"):
        access.read_password()
    access.PASSWORD.chmod(0o600)
    access.PASSWORD.write_text("convs2s:\n")
    with pytest.raises(RuntimeError, match=r"found something other than user:password\. Remove it"):
        access.make_password()


@pytest.mark.skipif(os.getuid() != 0, reason="needs root, to play another user")
def test_a_server_of_another_user_gets_no_password(repo: Path) -> None:
    """Another user may be waiting on the port for `make flow`: a server decides what its workers run."""
    code = (
        "import http.server as s\n"
        "class Yes(s.BaseHTTPRequestHandler):\n"
        "    def do_GET(self): self.send_response(200); self.end_headers(); print(self.headers, flush=True)\n"
        "    log_message = print\n"
        "with s.HTTPServer(('127.0.0.1', 0), Yes) as w: print(w.server_port, flush=True), w.serve_forever()"
    )
    command = [shutil.which("python3", path=os.defpath) or sys.executable, "-c", code]
    other = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd="/", user=65534, group=65534)
    try:
        assert other.stdout is not None
        port = other.stdout.readline().strip()
        done = play(repo, "deploy", FLOW_PORT=port)
    finally:
        other.kill()
        seen = other.communicate()[0]
    assert done.returncode == 2 and "found a server that belongs to another user or" in done.stderr, (
        done.stderr
    )
    assert "User-Agent" in seen and "Authorization" not in seen


def test_a_server_without_a_password_is_not_used(repo: Path) -> None:
    """Servers of earlier versions may still be running when a clone is upgraded."""
    old = subprocess.Popen(
        [sys.executable, "-", "pipelines.flows.server"],
        cwd=repo,
        env={**os.environ, machine.MARK: "server", "PREFECT_API_URL": "http://127.0.0.1:4/api"},
        stdin=subprocess.PIPE,
    )
    done = play(repo, "run")
    old.communicate()
    assert done.returncode == 2
    assert "this clone's server has no password. Stop it first: make flow-stop" in done.stderr


@pytest.mark.skipif(os.getuid() != 0, reason="needs root, to play another user")
def test_a_process_of_another_user_is_not_taken_for_our_server(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its environment would set the server from which our worker takes its runs."""
    monkeypatch.setattr(machine, "ROOT", repo)
    command = [shutil.which("python3", path=os.defpath) or sys.executable, "-", "pipelines.flows.server"]
    for user, found in ((0, True), (65534, False)):
        env = {machine.MARK: "server"}
        fake = subprocess.Popen(command, cwd=repo, env=env, stdin=subprocess.PIPE, user=user, group=user)
        assert soon(lambda pid=fake.pid: psutil.Process(pid).cmdline() == command)  # type: ignore[misc]
        assert (machine.running("server") is not None) == found
        fake.communicate()


TAKE = """
import socket, sys
port, options = int(sys.argv[1]), [socket.SO_REUSEADDR, socket.SO_REUSEPORT]
for address in ("127.0.0.1", "0.0.0.0"):
    for chosen in ([], options[:1], options[1:], options):
        with socket.socket() as taken:
            for option in chosen:
                taken.setsockopt(socket.SOL_SOCKET, option, 1)
            try:
                taken.bind((address, port))
                taken.listen()
                print("taken", address, chosen)
            except OSError as error:
                pass
"""


@pytest.mark.skipif(os.getuid() != 0, reason="needs root, to play another user")
def test_no_other_user_can_bind_the_port_of_a_dead_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker or flow that is still alive would send its password to whoever listens there."""
    monkeypatch.setattr(access, "held", [])
    with access.share(0) as server:
        server.listen()
        address = f"http://127.0.0.1:{server.getsockname()[1]}/api"
        access.hold(address)
    command = [shutil.which("python3", path=os.defpath) or sys.executable, "-c", TAKE]
    command.append(str(access.port_of(address)))
    other = functools.partial(subprocess.run, command, capture_output=True, text=True, check=True, cwd="/")
    assert other(user=65534, group=65534).stdout == ""
    with access.share(access.port_of(address)) as again:
        again.listen()  # our next server
        assert access.hold(address)
    for port in access.held:
        port.close()
    assert "taken 127.0.0.1 []" in other(user=65534, group=65534).stdout


def test_a_port_has_one_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two servers sharing a port would each get some of the calls. Workers share it only to hold it."""
    monkeypatch.setattr(access, "held", [])
    with access.share(0) as free:
        port = int(free.getsockname()[1])
        access.hold(f"http://127.0.0.1:{port}/api")
        taken = rf"port {port} is taken .*FLOW_PORT"
        with access.claim(port), pytest.raises(RuntimeError, match=taken), access.claim(port):
            pass
        with access.claim(port):
            assert len(access.held) == 1
    access.held.pop().close()
    with socket.socket() as other, pytest.raises(RuntimeError, match="is taken"):
        other.bind(("127.0.0.1", port))
        other.listen()
        with access.claim(port):
            pass


def test_an_address_elsewhere_is_not_held(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor is a port whose server does not share it: an earlier version, or another program."""
    monkeypatch.setattr(access, "held", [])
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        for address in ("http://10.0.0.1:4200/api", f"http://127.0.0.1:{server.getsockname()[1]}/api", ""):
            assert not access.hold(address)
    assert access.held == []
