"""Prefect on one machine: `make flow` starts it and runs the pipeline, `make flow-stop` stops it.

    python -m pipelines.flows.machine run [NAME=VALUE ...]
    python -m pipelines.flows.machine sweep TABLE [NAME=VALUE ...]   # experiments/tables/TABLE.yaml
    python -m pipelines.flows.machine stop
    python -m pipelines.flows.machine deploy           # to the server at PREFECT_API_URL
    python -m pipelines.flows.machine server           # in the foreground, for services
    python -m pipelines.flows.machine worker POOL      # in the foreground, for services and batch systems

Database, logs and password live in .prefect/ of the clone. If PREFECT_API_URL is set, that server is used,
and never started or stopped. Server and worker are identified by their processes' working directory, command
and environment. (`prefect server start --background` relies on a process ID, which after a reboot may belong
to another program, and writes no log; and Prefect has no equivalent for workers.)
"""

import argparse
import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import httpx
import psutil

from pipelines.check import check_folder
from pipelines.flows import access
from pipelines.flows.access import HOME
from pipelines.flows.form import ValueParams
from pipelines.flows.resources import queues
from pipelines.flows.workspace import ROOT
from pipelines.preset import parse_override
from pipelines.sweep_table import read_table

WAIT = 90.0  # seconds to wait for a server to come up
MARK = "CONVS2S_BACKGROUND"  # environment variable that marks the server and worker started by this program
PROGRAMS = {"server": ["pipelines.flows.server"], "worker": ["prefect", "worker", "start"]}  # after python -m
DEFAULTS = {
    "PREFECT_HOME": str(HOME),
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_SERVER_UI_SHOW_PROMOTIONAL_CONTENT": "false",
    "DO_NOT_TRACK": "1",
    "PREFECT_SERVER_ALLOW_EPHEMERAL_MODE": "false",  # a missing server is an error
    "PREFECT_WORKER_QUERY_SECONDS": "2",  # otherwise a run starts only after 13 s
    "PREFECT_FLOWS_HEARTBEAT_FREQUENCY": "30",  # for the automation that detects dead runs
    "PREFECT_CLIENT_MAX_RETRIES": "8",  # after 2, 4, 8, ... s: a restarting server may be down for minutes
    "PREFECT_LOGGING_TO_API_WHEN_MISSING_FLOW": "ignore",
    "USER": psutil.Process().username(),  # DVC fails for a user without a name, as in docker run --user 1234
}


def use_server(start_missing: bool) -> None:
    """Set the environment of this process and its children; raise a RuntimeError if no server answers.

    The server is this clone's if it is running, otherwise the one on port FLOW_PORT.
    """
    access.make_home()
    named, server = os.environ.get("PREFECT_API_URL"), running("server")
    if server and not named:
        address, password = (server.environ().get(name, "") for name in ("PREFECT_API_URL", access.CLIENT))
        if not password:
            raise RuntimeError("this clone's server has no password. Stop it first: make flow-stop")
    else:
        address = named or own_address()
        password = access.make_password() if start_missing and not named else access.read_password()
    set_environment(address, password)
    if start_missing and not (named or server):
        start_server()
    ours = access.hold(address)  # from now on, no other user can bind the port
    if not answers(address):
        raise RuntimeError(
            f"no Prefect server answers at {address}. Start it, set PREFECT_API_URL to the address of a "
            "running server, or unset it: `make flow` then starts a server here."
        )
    if not (ours or named):
        raise RuntimeError(
            f"{address}: found a server that belongs to another user or was not started by make flow. "
            "Another user could learn the password and send our worker runs. Choose another port: make flow "
            f"FLOW_PORT={access.port_of(address) + 1}, or set PREFECT_API_URL if the server is yours."
        )
    if not answers(address, os.environ.get(access.CLIENT, ":")):
        raise RuntimeError(
            f"the server at {address} rejects the password. Wanted the one in .prefect/password of the clone "
            f"that started it: copy that file here, or set {access.CLIENT}."
        )


def set_environment(address: str, password: str) -> None:
    """Set the environment variables that Prefect reads on import; the user's settings take precedence."""
    settings = {"PREFECT_API_URL": address} | ({access.CLIENT: password} if password else {})
    os.environ.update({**DEFAULTS, **settings, **os.environ})
    # Runs start in another folder. The environment's own path may be that of another clone.
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))


def own_address() -> str:
    """Return the address of a server started in this clone."""
    return f"http://127.0.0.1:{os.environ.get('FLOW_PORT', '4200')}/api"


def run(flow: str, params: Mapping[str, Any]) -> int:
    """Start server and worker if needed, run a flow and follow it to its end; return an exit status."""
    start, named = time.monotonic(), bool(os.environ.get("PREFECT_API_URL"))
    use_server(start_missing=True)
    from pipelines.flows import deployment  # noqa: PLC0415

    deployment.deploy()
    start_worker()
    print(f"Prefect is ready after {time.monotonic() - start:.0f} s.", flush=True)
    return deployment.trigger_and_follow(
        flow, params, lambda: check_runs("worker"), lambda first: restart_server(named, first)
    )


def answers(address: str, login: str = "") -> bool:
    """Return whether a Prefect server answers, and accepts the login (user:password), if one is given."""
    path, auth = ("/admin/version", login.partition(":")[::2]) if login else ("/health", None)
    try:
        answer = httpx.get(address.rstrip("/") + path, auth=auth, timeout=5)
    except httpx.HTTPError:
        return False
    return answer.is_success or (answer.status_code == httpx.codes.UNAUTHORIZED and not login)


def restart_server(named: bool, first: bool) -> None:
    """Restart the server if it is ours and has exited; `first`: say that it does not answer.

    Raises a RuntimeError if the worker has exited as well: make flow-stop ends both, the worker first.
    """
    if first:
        own = "" if named else f" Its log is {HOME}/server.log; to stop everything: make flow-stop"
        what = f"The Prefect server at {os.environ['PREFECT_API_URL']} does not answer."
        print(f"{what} Stages go on and report once it does.{own}", flush=True)
    if not (named or running("server")):
        check_runs("worker")
        try:
            check_runs("server")
        except RuntimeError as error:
            print(error, flush=True)
        start_server()


def start_server() -> None:
    """Start the server on loopback; raise a RuntimeError if it exits early or its port is taken."""
    address = os.environ["PREFECT_API_URL"]
    port = access.port_of(address)
    with access.claim(port):  # fails seconds earlier than the server would
        print(f"Starting the Prefect server on 127.0.0.1:{port} ...", flush=True)
    start_detached("server", [*PROGRAMS["server"], str(port)])
    deadline = time.monotonic() + WAIT
    while not answers(address) and time.monotonic() < deadline:
        time.sleep(0.2)
        check_runs("server")
    print(f"Password of its pages: {os.environ[access.CLIENT]} (kept in {access.PASSWORD})", flush=True)


def start_worker() -> None:
    """Start a worker of the pool `gpu` unless it is already running; it picks up runs within seconds."""
    worker = running("worker")
    if worker is None:
        print("Starting a worker ...", flush=True)
        start_detached("worker", worker_command("gpu"))
    elif (serves := worker.environ()["PREFECT_API_URL"]) != os.environ["PREFECT_API_URL"]:
        raise RuntimeError(f"the worker of this clone serves {serves}. Stop it first: make flow-stop")


def worker_command(pool: str) -> list[str]:
    """Return the module and arguments that start a worker.

    It takes one run at a time, because a clone is one workspace; runs that wait are shown as Late. In the
    pool `remote`, it takes only stages for which it has enough GPUs.
    """
    name = f"{socket.gethostname()} {ROOT.name}"
    served = [f"--work-queue={queue}" for queue in (queues() if pool == "remote" else [])]
    place = ["--pool", pool, "--type", "process", "--limit", "1", "--name", name]
    return [*PROGRAMS["worker"], *place, *served]


def start_detached(name: str, arguments: Sequence[str]) -> None:
    """Start a program that outlives this one and keeps our ports; its output goes to .prefect/NAME.log."""
    with (HOME / f"{name}.log").open("ab") as log:
        subprocess.Popen(
            [sys.executable, "-m", *arguments],
            cwd=ROOT,
            env={**os.environ, MARK: name},
            pass_fds=[port.fileno() for port in access.held],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def running(name: str) -> psutil.Process | None:
    """Return the server or worker that this program has started in this clone, if it is still running."""
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            command = process.cmdline()[2:5]
            ours = process.cwd() == str(ROOT) and command[: len(PROGRAMS[name])] == PROGRAMS[name]
            ours = ours and process.uids().real == os.getuid()  # root can read other users' environments
            if ours and process.environ().get(MARK) == name:
                return process
    return None


def check_runs(name: str) -> None:
    """Check that our server or worker is running; raise a RuntimeError with the end of its log if not."""
    if not running(name):
        log = HOME / f"{name}.log"
        end = "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-15:])
        raise RuntimeError(f"the {name} has exited; {log} " + (f"ends with:\n{end}" if end else "is empty"))


def stop() -> list[str]:
    """Stop the worker, with its flow runs, and the server; return which of them were running."""
    stopped = {name: process for name in ("worker", "server") if (process := running(name))}
    for process in stopped.values():
        family = [process, *process.children(recursive=True)]
        for end in (psutil.Process.terminate, psutil.Process.kill):
            for member in family:
                with contextlib.suppress(psutil.NoSuchProcess):
                    end(member)
            _, family = psutil.wait_procs(family, timeout=10)
    return list(stopped)


def become(arguments: Sequence[str]) -> NoReturn:
    """Replace this process with another program, which keeps our ports."""
    os.chdir(ROOT)
    for port in access.held:
        port.set_inheritable(True)
    os.execv(sys.executable, [sys.executable, "-m", *arguments])


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    command = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    commands = command.add_subparsers(dest="command", required=True)
    reproduce, sweep = commands.add_parser("run"), commands.add_parser("sweep")
    sweep.add_argument("table", metavar="TABLE")
    for flow in (reproduce, sweep):
        flow.add_argument("overrides", nargs="*", type=parse_override, metavar="NAME=VALUE")
    commands.add_parser("stop")
    commands.add_parser("deploy")
    commands.add_parser("server")
    commands.add_parser("worker").add_argument("pool", choices=["gpu", "remote"])
    return command


def execute(options: argparse.Namespace) -> int:
    """Execute a command; return an exit status."""
    if options.command == "stop":
        stopped = stop()
        print(f"Stopped: {', '.join(stopped)}." if stopped else "Neither server nor worker was running.")
        return 0
    if options.command in (
        "run",
        "sweep",
    ):  # before anything starts or DVC puts values into commands
        asked = ValueParams(overrides=dict(options.overrides))
        check_folder(asked.written(ROOT)[1], ROOT / "params.yaml")
        params = asked.model_dump(include={"overrides"})
        if options.command == "run":
            return run("reproduce", params)
        read_table(options.table)
        return run("sweep", {"table": options.table, **params})
    if options.command == "server":
        access.make_home()
        set_environment(own_address(), os.environ.get(access.CLIENT) or access.make_password())
        become([*PROGRAMS["server"], str(access.port_of(own_address()))])
    use_server(start_missing=False)
    from pipelines.flows import deployment  # noqa: PLC0415

    if options.command == "worker":
        deployment.make_pools(queues() if options.pool == "remote" else [])
        become(worker_command(options.pool))
    deployment.deploy()
    return 0


if __name__ == "__main__":
    try:
        sys.exit(execute(parser().parse_args()))
    except (RuntimeError, ValueError, FileNotFoundError) as error:
        print(f"make flow: {error}", file=sys.stderr)
        sys.exit(2)
