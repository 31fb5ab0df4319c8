"""A Prefect server for the tests, flow runs on it, queries of its API, and the processes that runs leave."""

import contextlib
import json
import os
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import psutil

from pipelines.flows import machine
from tests.flows import forked, toy

FINAL = {"COMPLETED", "FAILED", "CANCELLED", "CRASHED"}


def over(task: Mapping[str, Any]) -> bool:
    """Return whether a task run has ended, or can never start because a parent has failed."""
    return task["state_type"] in FINAL or task["state_name"] == "NotReady"


class FlowProcess(NamedTuple):
    """A flow in a process of its own, and the id of its run."""

    process: BaseProcess
    run: str


@dataclass
class Server:
    """A server on loopback, protected like that of `make flow`; `auth` is user:password.

    It starts with a copy of `database`, which saves the migrations of an empty one.
    """

    home: Path
    auth: str = "convs2s:opensesame"
    database: Path | None = None
    port: int = 0
    process: subprocess.Popen[bytes] | None = None
    deployed: bool = False
    env: dict[str, str] = field(default_factory=dict)
    csrf: dict[str, str] = field(default_factory=dict)  # what a change of the server's state must bear
    http: httpx.Client | None = None
    flows: list[BaseProcess] = field(default_factory=list)

    def start(self) -> None:
        """Start it and wait until it answers."""
        self.home.mkdir(parents=True, exist_ok=True)
        if not self.port:
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", 0))
                self.port = probe.getsockname()[1]
        if self.database and not (self.home / "prefect.db").exists():
            copy_database(self.database, self.home / "prefect.db")
        plain = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
        address = f"http://127.0.0.1:{self.port}/api"
        self.env = {**plain, **machine.settings(address, self.auth), **toy.IDENTITY}
        self.env["PREFECT_HOME"] = str(self.home)
        with (self.home / "server.log").open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", *machine.server_command(address)],
                cwd=self.home,
                env=self.env,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        assert soon(lambda: machine.answers(address), 180), (self.home / "server.log").read_text()[-3000:]

    def stop(self) -> None:
        """Stop it, and any flows that a failed test has left running."""
        for flow in self.flows:
            if flow.pid and flow.is_alive():  # else its number may be another process's
                end(flow.pid)
        self.halt()

    def halt(self) -> None:
        """Stop only the server."""
        self.http = None
        if self.process is not None:
            end(self.process.pid)
            self.process.wait()

    @contextlib.contextmanager
    def away(self) -> Iterator[None]:
        """Stop only the server, and restart it on the same port afterwards, for other tests, too."""
        self.halt()
        try:
            yield
        finally:
            self.start()

    def client(self) -> httpx.Client:
        """Return an API client that knows the password; creating a client takes longer than a query."""
        if self.http is None:
            auth = httpx.BasicAuth(*self.auth.split(":"))
            self.http = httpx.Client(base_url=f"http://127.0.0.1:{self.port}/api", auth=auth, timeout=30)
            answer = self.http.get("csrf-token", params={"client": "tests"}).raise_for_status()
            self.csrf = {"Prefect-Csrf-Client": "tests", "Prefect-Csrf-Token": answer.json()["token"]}
            self.http.headers.update(self.csrf)
        return self.http

    def post(self, path: str, content: Mapping[str, Any]) -> Any:
        """Send a POST request to the API."""
        for _ in range(5):
            answer = self.client().post(path, json=content)
            if answer.status_code != httpx.codes.SERVICE_UNAVAILABLE:  # when SQLite is locked, try again
                break
            time.sleep(1)
        answer.raise_for_status()
        return answer.json() if answer.content else None

    def flow_run(self, run: str) -> dict[str, Any]:
        """Return a flow run."""
        return dict(self.post("flow_runs/filter", {"flow_runs": {"id": {"any_": [run]}}})[0])

    def tasks(self, run: str) -> dict[str, dict[str, Any]]:
        """Return the task runs of a flow run, by name; if the run has ended, wait for their final states.

        The server learns of these from events, which may arrive after the end of the run.
        """

        def read() -> list[dict[str, Any]]:
            query = {"flow_runs": {"id": {"any_": [run]}}, "limit": 200}
            return list(self.post("task_runs/filter", query))

        if self.flow_run(run)["state_type"] in FINAL:
            soon(lambda: all(over(task) for task in read()), 20)
        return {task["name"]: task for task in read()}

    def states(self, run: str) -> dict[str, str]:
        """Return the names of the states of all tasks."""
        return {name: task["state_name"] for name, task in self.tasks(run).items()}

    def artifacts(self, run: str) -> dict[str, dict[str, Any]]:
        """Return the artifacts of a flow run, by key."""
        found = self.post("artifacts/filter", {"flow_runs": {"id": {"any_": [run]}}, "limit": 200})
        return {artifact["key"]: artifact for artifact in found}

    def logs(self, run: str) -> str:
        """Return all log messages of a flow run."""
        text: list[str] = []
        query = {"logs": {"flow_run_id": {"any_": [run]}}, "limit": 200}
        while page := self.post("logs/filter", {**query, "offset": len(text)}):
            text += [log["message"] for log in page]
        return "\n".join(text)

    def start_flow(self, repo: Path, flow: str = "reproduce", **params: Any) -> FlowProcess:
        """Start a flow in a clone, in a process of its own."""
        module, model = f"pipelines.flows.{flow}", f"{flow.capitalize()}Params"
        code = (
            f"import json, sys; from {module} import {flow}, {model}\n"
            f"{flow}({model}(**json.loads(sys.argv[1])), return_state=True)"
        )
        env = {**self.env, "PYTHONPATH": toy.python_path(repo)}
        before, log = self.known(), self.home / "flow.log"
        process = forked.start(code, [json.dumps(params)], repo, env, log)
        self.flows.append(process)
        assert soon(lambda: bool(self.known() - before) or not process.is_alive())
        new = self.known() - before
        assert new, log.read_text()[-3000:]
        return FlowProcess(process, new.pop())

    def known(self) -> set[str]:
        """Return the ids of all flow runs that are not subflows."""
        return {run["id"] for run in self.post("flow_runs/filter", {}) if not run["parent_task_run_id"]}

    def run_flow(self, repo: Path, flow: str = "reproduce", **params: Any) -> str:
        """Run a flow to its end; return its run's id."""
        started = self.start_flow(repo, flow, **params)
        started.process.join(300)
        return started.run

    def worker(self, repo: Path, pool: str) -> subprocess.Popen[bytes]:
        """Start a worker in a clone; it takes one run at a time."""
        with (self.home / "worker.log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "pipelines.flows.machine", "worker", pool],
                cwd=repo,
                env={**self.env, "PYTHONPATH": toy.python_path(repo)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def deploy(self, repo: Path, again: bool = False) -> None:
        """Register pools, automation and deployments, as `make flow` does; once for all clones."""
        if self.deployed and not again:
            return
        self.deployed = True
        code = "from pipelines.flows.deployment import deploy; deploy()"
        log = self.home / "deploy.log"
        env = {**self.env, "PYTHONPATH": toy.python_path(repo)}
        process = forked.start(code, [], repo, env, log)
        process.join(120)
        assert process.exitcode == 0, log.read_text()[-3000:]

    def trigger(self, deployment: str, **params: Any) -> str:
        """Trigger a run of a deployment, FLOW/NAME; return its id."""
        found = self.client().get(f"deployments/name/{deployment}").raise_for_status().json()
        body = {"parameters": {"params": params}, "state": {"type": "SCHEDULED"}}
        return str(self.post(f"deployments/{found['id']}/create_flow_run", body)["id"])


def copy_database(database: Path, copy: Path) -> None:
    """Copy the database of a server that may be running."""
    with (
        contextlib.closing(sqlite3.connect(database)) as old,
        contextlib.closing(sqlite3.connect(copy)) as new,
    ):
        old.backup(new)


def soon(condition: Callable[[], bool], seconds: float = 120.0) -> bool:
    """Wait for a condition, up to a time limit."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.2)
    return condition()


def end(pid: int) -> None:
    """Kill a process and all its descendants."""
    try:
        family = [*psutil.Process(pid).children(recursive=True), psutil.Process(pid)]
    except psutil.NoSuchProcess:
        return
    for process in family:
        if process.is_running():
            process.kill()
    psutil.wait_procs(family, timeout=10)


def processes(repo: Path) -> list[str]:
    """Return the command lines of all processes whose working directory is a repository."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if Path(process.cwd()) == repo and process.status() != psutil.STATUS_ZOMBIE:
                found.append(" ".join(process.cmdline()))
    return found


def training(repo: Path) -> bool:
    """Return whether both trainings are running."""
    return {note[0] for note in toy.notes(repo)} >= {"train@1", "train@2"}


def started(server: Server, repo: Path) -> FlowProcess:
    """Start a flow and wait until it is training."""
    toy.behave(repo, train_1={"seconds": 90}, train_2={"seconds": 90})
    flow = server.start_flow(repo)
    assert soon(lambda: training(repo)), (server.home / "flow.log").read_text()[-2000:]
    assert len([line for line in processes(repo) if "toy.py data/trained" in line]) >= 2
    return flow


def check_gone(repo: Path, keep: Callable[[str], bool] = lambda _: False) -> None:
    """Check that no process is left after ten seconds."""
    assert soon(lambda: not [p for p in processes(repo) if not keep(p)], 10), processes(repo)
