"""A Prefect server for the tests, flow runs on it, queries of its API, and the processes that runs leave."""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import httpx
import psutil
from prefect.client.base import PrefectHttpxSyncClient

from pipelines.flows import machine
from tests.flows import toy

FINAL = {"COMPLETED", "FAILED", "CANCELLED", "CRASHED"}
HARMLESS = [
    "'type': 'auth'",  # a client whose server has been frozen says its password twice
    "NOT NULL constraint failed: events.occurred",  # Prefect stores no events if it has all of them already
]


def tracebacks(log: Path) -> list[str]:
    """Return the entries of a log of server or worker that have a traceback, but for harmless ones."""
    entries = re.split(r"^(?=\d\d:\d\d:\d\d\.\d{3} \||ERROR:)", log.read_text(), flags=re.MULTILINE)
    return [entry for entry in entries if "Traceback" in entry and not any(map(entry.count, HARMLESS))]


def free_port() -> int:
    """Return a port of this machine that nobody uses."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Server:
    """A server on loopback, protected like that of `make flow`; `auth` is user:password."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.auth = "convs2s:opensesame"
        home.mkdir(parents=True, exist_ok=True)
        self.address = f"http://127.0.0.1:{free_port()}/api"
        plain = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
        self.env = {**plain, **machine.settings(self.address, self.auth), **toy.IDENTITY}
        # By default, a worker that has ended is noticed only after a minute.
        self.env["PREFECT_SERVER_SERVICES_FOREMAN_LOOP_SECONDS"] = "2"
        self.env["PREFECT_SERVER_SERVICES_FOREMAN_WORK_QUEUE_LAST_POLLED_TIMEOUT_SECONDS"] = "8"
        self.env["PREFECT_HOME"] = str(home)
        login = httpx.BasicAuth(*self.auth.split(":"))
        self.client = PrefectHttpxSyncClient(
            base_url=self.address, auth=login, timeout=30, enable_csrf_support=True, raise_on_all_errors=False
        )
        self.process: subprocess.Popen[bytes] | None = None
        self.launched: list[subprocess.Popen[bytes]] = []
        self.deployed = False

    def launch(self, name: str, folder: Path, *arguments: str) -> subprocess.Popen[bytes]:
        """Start Python in a folder, with the flows' code there and output to NAME.log."""
        with (self.home / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, *arguments],
                cwd=folder,
                env={**self.env, "PYTHONPATH": toy.python_path(folder)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.launched.append(process)
        return process

    def log(self, name: str) -> str:
        """Return the end of a program's output."""
        return (self.home / f"{name}.log").read_text()[-3000:]

    def start(self) -> None:
        """Start it and wait until it answers."""
        self.process = self.launch("server", toy.ROOT, "-m", *machine.server_command(self.address))
        assert soon(self.answers, 180), self.log("server")

    def answers(self) -> bool:
        """Return whether it answers."""
        try:
            return self.client.get("admin/version").is_success
        except httpx.HTTPError:
            return False

    def stop(self) -> None:
        """Stop it, and any flows and workers that a failed test has left running."""
        for process in self.launched:
            end(process)

    def post(self, path: str, content: Mapping[str, Any]) -> Any:
        """Send a POST request to the API."""
        answer = self.client.post(path, json=content)
        answer.raise_for_status()
        return answer.json() if answer.content else None

    def queues(self) -> dict[str, str]:
        """Return the states of the work queues of remote workers, by name."""
        queues = self.post("work_pools/remote/queues/filter", {})
        return {queue["name"]: queue["status"] for queue in queues}

    def flow_run(self, run: str) -> dict[str, Any]:
        """Return a flow run."""
        return dict(self.post("flow_runs/filter", {"flow_runs": {"id": {"any_": [run]}}})[0])

    def tasks(self, run: str) -> dict[str, dict[str, Any]]:
        """Return the task runs of a flow run, by name; if the run has ended, wait for their final states.

        The server learns of these from events, which may arrive after the end of the run.
        """
        query = {"flow_runs": {"id": {"any_": [run]}}, "limit": 200}

        def over() -> bool:
            tasks = self.post("task_runs/filter", query)
            return all(task["state_type"] in FINAL or task["state_name"] == "NotReady" for task in tasks)

        if self.flow_run(run)["state_type"] in FINAL:
            soon(over, 20)
        return {task["name"]: task for task in self.post("task_runs/filter", query)}

    def states(self, run: str) -> dict[str, str]:
        """Return the names of the states of all tasks."""
        return {name: task["state_name"] for name, task in self.tasks(run).items()}

    def artifacts(self, run: str) -> dict[str, str]:
        """Return the contents of the artifacts of a flow run, by key."""
        artifacts = self.post("artifacts/filter", {"flow_runs": {"id": {"any_": [run]}}, "limit": 200})
        return {artifact["key"]: artifact["data"] for artifact in artifacts}

    def logs(self, run: str) -> str:
        """Return all log messages of a flow run."""
        text: list[str] = []
        query = {"logs": {"flow_run_id": {"any_": [run]}}, "limit": 200}
        while page := self.post("logs/filter", {**query, "offset": len(text)}):
            text += [log["message"] for log in page]
        return "\n".join(text)

    def start_flow(
        self, repo: Path, flow: str = "reproduce", **params: Any
    ) -> tuple[subprocess.Popen[bytes], str]:
        """Start a flow in a clone, in a process of its own; return this and the run's id."""
        module = f"pipelines.flows.{flow}"
        model = "SweepParams" if flow == "sweep" else "RunParams"
        code = (
            f"import json, sys; from {module} import {flow}, {model}\n"
            f"{flow}({model}(**json.loads(sys.argv[1])), return_state=True)"
        )
        before = self.runs()
        process = self.launch("flow", repo, "-c", code, json.dumps(params))
        assert soon(lambda: bool(self.runs() - before) or process.poll() is not None)
        new = self.runs() - before
        assert new, self.log("flow")
        return process, new.pop()

    def runs(self) -> set[str]:
        """Return the ids of all flow runs that are not subflows."""
        return {run["id"] for run in self.post("flow_runs/filter", {}) if not run["parent_task_run_id"]}

    def run_flow(self, repo: Path, flow: str = "reproduce", **params: Any) -> str:
        """Run a flow to its end; return its run's id."""
        process, run = self.start_flow(repo, flow, **params)
        process.wait()
        return run

    def worker(self, repo: Path, pool: str) -> subprocess.Popen[bytes]:
        """Start a worker in a clone; it takes one run at a time."""
        return self.launch("worker", repo, "-m", "pipelines.flows.machine", "worker", pool)

    def deploy(self, repo: Path) -> None:
        """Register pools, automation and deployments, as `make flow` does; once for all clones."""
        if not self.deployed:
            process = self.launch("deploy", repo, "-m", "pipelines.flows.machine", "deploy")
            assert process.wait() == 0, self.log("deploy")
            self.deployed = True

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to all processes of the server."""
        assert self.process is not None
        main = psutil.Process(self.process.pid)
        for process in [main, *main.children(recursive=True)]:
            process.send_signal(number)

    def trigger(self, **params: Any) -> str:
        """Trigger a run of the deployment `reproduce`; return its id."""
        deployment = self.client.get("deployments/name/reproduce/reproduce").raise_for_status().json()
        body = {"parameters": {"params": params}, "state": {"type": "SCHEDULED"}}
        return str(self.post(f"deployments/{deployment['id']}/create_flow_run", body)["id"])


def soon(condition: Callable[[], bool], seconds: float = 120.0) -> bool:
    """Wait for a condition, up to a time limit, which is longer on a busy machine."""
    begin = time.monotonic()
    while time.monotonic() - begin < seconds * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1)):
        if condition():
            return True
        time.sleep(0.2)
    return condition()


def end(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and all its descendants, unless it has ended."""
    if process.poll() is None:
        family = psutil.Process(process.pid).children(recursive=True)
        process.kill()
        for child in family:
            with contextlib.suppress(psutil.NoSuchProcess):
                child.kill()
        psutil.wait_procs(family, timeout=10)
        process.wait()


def processes(repo: Path) -> list[str]:
    """Return the command lines of all processes whose working directory is a repository."""
    lines = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if Path(process.cwd()) == repo and process.status() != psutil.STATUS_ZOMBIE:
                lines.append(" ".join(process.cmdline()))
    return lines


def training(repo: Path) -> bool:
    """Return whether both trainings are running."""
    return {note[0] for note in toy.notes(repo)} >= {"train@1", "train@2"}


def check_gone(repo: Path, keep: Callable[[str], bool] = lambda _: False) -> None:
    """Check that no process is left after ten seconds."""
    assert soon(lambda: not [p for p in processes(repo) if not keep(p)], 10), processes(repo)
