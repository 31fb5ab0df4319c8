"""`make flow` and `make flow-stop`: server and worker are started once if missing, and stopped again."""

import contextlib
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import httpx
import psutil
import pytest

from convs2s.config.load import parse_yaml
from pipelines import sweep_table
from pipelines.flows import machine, run_stages, workspace
from tests.flows import toy
from tests.flows.server import Server, check_gone, free_port, processes, soon, tracebacks, training
from tests.later_keys import gained_keys

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
    )


@pytest.mark.flows
def test_make_flow_and_make_flow_stop(repo: Path, tmp_path: Path) -> None:
    """One command for users who have never seen Prefect; another one ends all that it has started."""
    server = Server(tmp_path / "client")  # of the API: make flow starts the server
    (repo / ".prefect").mkdir()
    (repo / ".prefect" / "password").write_text(server.auth)
    run = play(repo, "run", "train.dropout=0.3", FLOW_PORT=str(httpx.URL(server.address).port))
    try:
        assert run.returncode == 0, run.stdout + run.stderr
        assert f"Watch it at {server.address.removesuffix('/api')}/v2/runs/flow-run/" in run.stdout
        assert f"Password of its pages: {server.auth} (kept in " in run.stdout
        assert f"{'train@2':<{run_stages.WIDTH}} Running stage 'train@2':" in run.stdout
        assert "Completed: 5 Executed" in run.stdout
        check_that_overrides_leave_the_workspace_alone(repo)
        check_that_nobody_but_the_owner_runs_anything(repo, server)
        toy.behave(repo, train_1={"seconds": 90}, train_2={"seconds": 90})
        scheduled = scheduled_run(repo, server)
        with watcher(repo, server) as watching:
            check_that_waiting_is_said(repo, server, scheduled, watching)
            check_that_a_cancelled_run_ends_its_stages(repo, server, scheduled)
            logs = [repo / f".prefect/{name}.log" for name in ("server", "worker")]
            assert not [entry for log in logs for entry in tracebacks(log)]
            check_that_a_watcher_says_that_its_server_has_died(server, watching)
    finally:
        stopped = play(repo, "stop")
    assert stopped.stdout == "Stopped.\n"
    assert not processes(repo)


def check_that_overrides_leave_the_workspace_alone(repo: Path) -> None:
    """The results have become an experiment."""
    assert toy.run(repo, "git", "status", "--porcelain") == ""
    assert not list((repo / ".dvc/tmp/flows").iterdir())
    name = toy.dvc(repo, "exp", "list", "--name-only")
    assert name.startswith("dropout-0-3-")
    reference = toy.run(repo, "git", "for-each-ref", "--format=%(refname)", f"refs/exps/*/*/{name}")
    assert "dropout: 0.3" in toy.run(repo, "git", "show", f"{reference}:params.yaml")


def check_that_nobody_but_the_owner_runs_anything(repo: Path, server: Server) -> None:
    """Without a password, any local user and any web page could have a worker execute a command."""
    name, password = server.auth.split(":")
    logs = [(repo / ".prefect" / f"{program}.log").read_text() for program in ("server", "worker")]
    assert password not in " ".join([*logs, *processes(repo)])
    client = server.client
    before = server.runs()
    deployment = client.get("deployments/name/reproduce/reproduce").raise_for_status().json()["id"]
    create = f"deployments/{deployment}/create_flow_run"
    body = {"state": {"type": "SCHEDULED"}}
    plain = httpx.Client(base_url=client.base_url)
    token = client.get("csrf-token", params={"client": "tests"}).json()["token"]
    csrf = {"Prefect-Csrf-Client": "tests", "Prefect-Csrf-Token": token}
    for login in [("", ""), (name, "wrong")]:
        assert plain.post(create, json=body, headers=csrf, auth=login).status_code == 401
    # A page from elsewhere, in the owner's browser
    foreign = {"Origin": "http://evil.example", "Access-Control-Request-Method": "POST"}
    preflight = client.options(create, headers=foreign)
    assert preflight.status_code == 400
    assert "access-control-allow-origin" not in preflight.headers
    assert plain.post(create, json=body, headers=foreign, auth=(name, password)).status_code == 403
    # Whoever has the password starts our flows, in our folder, and nothing else.
    command = body | {"job_variables": {"command": "touch owned"}}
    assert client.post(create, json=command).status_code == 422
    assert server.runs() == before


def scheduled_run(repo: Path, server: Server) -> str:
    """Return a run that a schedule has started; no later one follows.

    Prefect's scheduler needs packages that go with it, and another `make flow` must not remove the schedule.
    """
    command = "prefect deployment schedule create reproduce/reproduce --interval 5"
    subprocess.run([sys.executable, "-m", *command.split()], cwd=repo, env=server.env, check=True)
    assert play(repo, "deploy", PREFECT_API_URL=server.address).returncode == 0
    deployment = server.client.get("deployments/name/reproduce/reproduce").raise_for_status().json()
    (schedule,) = deployment["schedules"]
    running = {"flow_runs": {"state": {"type": {"any_": ["RUNNING"]}}}}
    assert soon(lambda: bool(server.post("flow_runs/filter", running)))
    path = f"deployments/{deployment['id']}/schedules/{schedule['id']}"
    server.client.delete(path).raise_for_status()
    (run,) = server.post("flow_runs/filter", running)
    assert run["auto_scheduled"]
    return str(run["id"])


@contextlib.contextmanager
def watcher(repo: Path, server: Server) -> "Iterator[subprocess.Popen[str]]":
    """Run `make flow` once more, in the background."""
    command = [sys.executable, "-m", "pipelines.flows.machine", "run", "--parallel", "3"]
    port = str(httpx.URL(server.address).port)
    env = {**os.environ, **toy.IDENTITY, "PYTHONPATH": toy.python_path(repo), "FLOW_PORT": port}
    with subprocess.Popen(command, cwd=repo, env=env, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def check_that_waiting_is_said(
    repo: Path, server: Server, run: str, watching: "subprocess.Popen[str]"
) -> None:
    """A worker takes one run at a time; who starts another would otherwise see nothing until it begins."""
    assert watching.stdout is not None
    page = f"{server.address.removesuffix('/api')}/v2/runs/flow-run/"
    name = server.flow_run(run)["name"]
    while not (line := watching.stdout.readline()).startswith("Watch it at "):
        assert line, "it has ended"
    assert watching.stdout.readline() == f"It waits for the run {name}: {page}{run}\n"
    assert watching.stdout.readline().startswith("To see what that does: make flow-status. To cancel a run: ")
    assert soon(lambda: training(repo))
    said = play(repo, "status", PREFECT_API_URL=server.address).stdout
    lines = [line.split() for line in said.splitlines()]
    assert ["reproduce", f"{name}:", "Running,"] in [words[:3] for words in lines], said
    assert f"    waits for the run {name}\n" in said
    assert ["train@1", ">", "python"] in [words[:3] for words in lines], said
    assert ["1", "stage(s)", "wait"] in [words[:3] for words in lines], said


def check_that_a_watcher_says_that_its_server_has_died(
    server: Server, watching: "subprocess.Popen[str]"
) -> None:
    """The run goes on; who watched it must know that, and how to see it again."""
    port = httpx.URL(server.address).port
    for connection in psutil.net_connections("tcp4"):
        if connection.laddr and connection.laddr.port == port and connection.status == psutil.CONN_LISTEN:
            psutil.Process(connection.pid).kill()
    said, _ = watching.communicate(timeout=60)
    assert "The server no longer answers: " in said
    assert "The run goes on without it. To follow it again: make flow-follow RUN=" in said
    assert watching.returncode == 1


def check_that_a_cancelled_run_ends_its_stages(repo: Path, server: Server, run: str) -> None:
    """The button in the UI cancels it; a training that went on would hold its GPU for days."""
    assert soon(lambda: training(repo))
    server.post(f"flow_runs/{run}/set_state", {"state": {"type": "CANCELLING"}})
    stay = "prefect", "flows.server", "machine run"
    check_gone(repo, lambda line: any(name in line for name in stay))
    assert soon(lambda: server.flow_run(run)["state_type"] == "CANCELLED", 40), server.flow_run(run)


def test_what_reaches_beyond_the_machine_is_shown_before_anything_starts(
    repo: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A launcher is a command; a sweep's rows may set one, too."""
    monkeypatch.setattr(machine, "ROOT", repo)
    monkeypatch.setattr(machine, "run", lambda *_: 0)
    monkeypatch.setattr(sweep_table, "TABLES", repo)
    row = {"row": "a", "set": {"run.launcher": "touch b", "run.checkpoints": "s3://c\x1b"}}
    (repo / "mine.yaml").write_text(json.dumps({"rows": [row, {"row": "plain"}]}))
    for arguments in (["run"], ["run", "run.launcher=srun a"], ["sweep", "mine"]):
        assert machine.run_command(machine.parser().parse_args(arguments)) == 0
    assert capsys.readouterr().out.splitlines() == [
        "run.launcher: training runs this command as you: srun a",
        "run.checkpoints: training copies its weights there: s3://c\ufffd",
        "run.launcher: training runs this command as you: touch b",
    ]


@pytest.mark.parametrize("words", ["run", "sweep table5"])
def test_stages_do_not_run_only_for_a_key_that_came_later(
    words: str, repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such a key changes no result, but a rerun may take a week: a flow stops first, as `make repro` does."""
    monkeypatch.setattr(machine, "ROOT", repo)
    monkeypatch.setattr(machine, "run", lambda *_: pytest.fail("the run has started"))
    train = parse_yaml((repo / "params.yaml").read_text(encoding="utf-8"), "params.yaml")["train"]
    lock = {"stages": {"train@1": {"params": {"params.yaml": {"train": train}}}}}
    (repo / "dvc.lock").write_text(json.dumps(lock))
    with (
        gained_keys(),
        pytest.raises(ValueError, match=r"(?s)as before: train\.added_key\..*force train@1"),
    ):
        toy.set_params(repo, {"train.added_key": 0.0})
        machine.run_command(machine.parser().parse_args(shlex.split(words)))


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Use a folder of the test for the server's files; it does not exist yet."""
    folder = tmp_path / ".prefect"
    monkeypatch.setattr(workspace, "HOME", folder)
    monkeypatch.setattr(workspace, "PASSWORD", folder / "password")
    return folder


def test_nobody_but_the_owner_enters_the_folder_of_the_server(home: Path) -> None:
    """Its files say how to reach the server; a folder that was open before is closed."""
    home.mkdir(mode=0o755)
    workspace.make_home()
    assert home.stat().st_mode & 0o777 == 0o700


def test_nobody_but_the_owner_reads_the_password(home: Path) -> None:
    """With it, one can run commands as the owner."""
    workspace.make_home()
    workspace.make_password()
    assert (home / "password").stat().st_mode & 0o777 == 0o600


def test_the_password_is_made_once(home: Path) -> None:
    """Flows and workers that have read it must be able to go on using it."""
    assert workspace.read_password() == ""
    workspace.make_home()
    password = workspace.make_password()
    assert workspace.read_password() == password
    assert workspace.make_password() == password
    assert (home / "password").is_file()


def test_each_clone_has_a_password_of_its_own(home: Path) -> None:
    """It is random, and long enough that nobody guesses it."""
    workspace.make_home()
    password = workspace.make_password()
    (home / "password").unlink()
    assert workspace.make_password() != password
    assert len(password) == len("convs2s:") + 32


def test_the_server_listens_on_loopback() -> None:
    """Its API runs commands: no other machine may reach it."""
    command = machine.server_command("http://127.0.0.1:4207/api")
    assert command[command.index("--host") + 1] == "127.0.0.1"
    assert "4207" in command
    assert httpx.URL(machine.ADDRESS).host == "127.0.0.1"


def test_the_server_answers_only_its_own_pages() -> None:
    """A page of another site, in the owner's browser, must not start a run."""
    settings = machine.settings("http://127.0.0.1:4207/api", "a:b")
    assert settings["PREFECT_SERVER_CORS_ALLOWED_ORIGINS"] == "http://127.0.0.1:4207"


def test_a_users_own_server_is_never_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the server that PREFECT_API_URL names does not answer, none is started in its place."""
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
    ],
)
def test_errors_are_reported_before_anything_starts(
    words: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Starting server and worker first would delay the message by half a minute."""
    monkeypatch.setattr(machine, "run", lambda *_: pytest.fail("the run has started"))
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        machine.run_command(machine.parser().parse_args(shlex.split(words)))
