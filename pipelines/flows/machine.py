"""Prefect on one machine: `make flow` starts it and runs the pipeline, `make flow-stop` stops it.

    python -m pipelines.flows.machine run [NAME=VALUE ...]
    python -m pipelines.flows.machine sweep TABLE [NAME=VALUE ...]   # experiments/tables/TABLE.yaml
    python -m pipelines.flows.machine stop
    python -m pipelines.flows.machine deploy           # to the server at PREFECT_API_URL
    python -m pipelines.flows.machine server           # in the foreground, for services
    python -m pipelines.flows.machine worker POOL      # in the foreground, for services and batch systems

Database, logs and password live in .prefect/ of the clone. If PREFECT_API_URL is set, that server is used,
and never started or stopped. Server and worker are identified by their working directory and command.
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

from pipelines.check import check_folders
from pipelines.disk import print_disk
from pipelines.flows import workspace
from pipelines.flows.form import ValueParams
from pipelines.flows.resources import queues
from pipelines.flows.workspace import HOME, ROOT
from pipelines.preset import parse_override
from pipelines.sweep_table import read_table

CLIENT = "PREFECT_API_AUTH_STRING"
PROGRAMS = {
    "server": ["prefect", "server", "start"],
    "worker": ["prefect", "worker", "start", "--pool", "pipelines"],
}


def settings(address: str, password: str) -> dict[str, str]:
    """Return the environment variables from which Prefect's programs take their settings."""
    return {
        "PREFECT_API_URL": address,
        CLIENT: password,
        "PREFECT_SERVER_API_AUTH_STRING": password,
        "PREFECT_SERVER_CORS_ALLOWED_ORIGINS": address.removesuffix("/api"),
        "PREFECT_SERVER_CSRF_PROTECTION_ENABLED": "true",
        "PREFECT_HOME": str(HOME),
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "DO_NOT_TRACK": "1",
        "PREFECT_SERVER_ALLOW_EPHEMERAL_MODE": "false",  # a missing server is an error
        "PREFECT_WORKER_QUERY_SECONDS": "2",  # otherwise a run starts only after 13 s
        "PREFECT_FLOWS_HEARTBEAT_FREQUENCY": "30",  # for the automation that detects dead runs
        "PREFECT_CLIENT_MAX_RETRIES": "8",  # after 2, 4, 8, ... s: a server may be down for minutes
        "PREFECT_LOGGING_TO_API_WHEN_MISSING_FLOW": "ignore",
        "USER": psutil.Process().username(),  # DVC fails without, as in docker run --user 1234
    }


def set_environment(address: str, password: str) -> None:
    """Set the environment of this process and its children; the user's settings take precedence."""
    chosen = {name: value for name, value in settings(address, password).items() if value}
    os.environ.update({**chosen, **os.environ})
    # Runs start in another folder. The environment's own path may be that of another clone.
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))


def own_address() -> str:
    """Return the address of a server started in this clone."""
    return f"http://127.0.0.1:{os.environ.get('FLOW_PORT', '4200')}/api"


def use_server(start_missing: bool) -> None:
    """Set the environment of this process and its children; raise a RuntimeError if no server answers.

    The server is this clone's if it is running, otherwise the one on port FLOW_PORT.
    """
    workspace.make_home()
    named, server = os.environ.get("PREFECT_API_URL"), running("server")
    address = named or (server.environ()["PREFECT_API_URL"] if server else own_address())
    ours = start_missing and not named
    set_environment(address, workspace.make_password() if ours else workspace.read_password())
    if ours and not answers(address):
        start_server(address)
    if not answers(address):
        raise RuntimeError(
            f"no Prefect server answers at {address}. Start it, or unset PREFECT_API_URL: `make flow` then "
            "starts a server here."
        )
    if not answers(address, os.environ.get(CLIENT, ":")):
        raise RuntimeError(
            f"the server at {address} rejects the password: expected the one in .prefect/password of the "
            "clone that started it. Copy that file here, or use another port: make flow FLOW_PORT=4201."
        )


def answers(address: str, login: str = "") -> bool:
    """Return whether a Prefect server answers, and accepts the login (user:password), if one is given."""
    path, auth = ("/admin/version", login.partition(":")[::2]) if login else ("/health", None)
    try:
        answer = httpx.get(address.rstrip("/") + path, auth=auth, timeout=5)
    except httpx.HTTPError:
        return False
    return answer.is_success or (answer.status_code == httpx.codes.UNAUTHORIZED and not login)


def server_command(address: str) -> list[str]:
    """Return the module and arguments that start a server on loopback."""
    return [*PROGRAMS["server"], "--host", "127.0.0.1", "--port", str(httpx.URL(address).port)]


def worker_command(pool: str) -> list[str]:
    """Return the module and arguments that start a worker.

    It takes one run at a time, because a clone is one workspace; runs that wait are shown as Late. In the
    pool `remote`, it takes only stages for which it has enough GPUs.
    """
    name = f"{socket.gethostname()} {ROOT.name}"
    served = [f"--work-queue={queue}" for queue in (queues() if pool == "remote" else [])]
    return [*PROGRAMS["worker"][:-1], pool, "--type", "process", "--limit", "1", "--name", name, *served]


def start_server(address: str) -> None:
    """Start the server and wait until it answers; raise a RuntimeError if it exits early."""
    start_detached("server", server_command(address))
    while not answers(address):
        time.sleep(0.2)
        check_runs("server")
    print(f"Password of its pages: {os.environ[CLIENT]} (kept in {workspace.PASSWORD})", flush=True)


def start_worker() -> None:
    """Start a worker of the pool `pipelines` unless it is running; it picks up runs within seconds."""
    worker = running("worker")
    if worker is None:
        start_detached("worker", worker_command("pipelines"))
    elif (serves := worker.environ()["PREFECT_API_URL"]) != os.environ["PREFECT_API_URL"]:
        raise RuntimeError(f"the worker of this clone serves {serves}. Stop it first: make flow-stop")


def start_detached(name: str, arguments: Sequence[str]) -> None:
    """Start a program that outlives this one; its output goes to .prefect/NAME.log."""
    print(f"Starting a {name} ...", flush=True)
    with (HOME / f"{name}.log").open("ab") as log:
        subprocess.Popen(
            [sys.executable, "-m", *arguments],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def running(name: str) -> psutil.Process | None:
    """Return the server or worker that runs in this clone, if there is one."""
    for process in psutil.process_iter(["cwd", "cmdline"]):
        module = (process.info["cmdline"] or [])[2:]
        if process.info["cwd"] == str(ROOT) and module[: len(PROGRAMS[name])] == PROGRAMS[name]:
            return process
    return None


def check_runs(name: str) -> None:
    """Check that our server or worker is running; raise a RuntimeError with the end of its log if not."""
    if not running(name):
        log = HOME / f"{name}.log"
        end = "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-15:])
        raise RuntimeError(f"the {name} has exited; {log} ends with:\n{end}")


def stop() -> list[str]:
    """Stop the worker, with its flow runs, and the server; return which of them were running."""
    stopped = {name: process for name in ("worker", "server") if (process := running(name))}
    for process in stopped.values():
        family = [process, *process.children(recursive=True)]
        for member in family:
            with contextlib.suppress(psutil.NoSuchProcess):
                member.terminate()
        for left in psutil.wait_procs(family, timeout=10)[1]:
            left.kill()
    return list(stopped)


def run(flow: str, params: Mapping[str, Any]) -> int:
    """Start server and worker if needed, run a flow and follow it to its end; return an exit status."""
    start = time.monotonic()
    use_server(start_missing=True)
    from pipelines.flows import deployment  # noqa: PLC0415  # Prefect reads the environment when imported

    deployment.deploy()
    start_worker()
    print(f"Prefect is ready after {time.monotonic() - start:.0f} s.", flush=True)
    return deployment.trigger_and_follow(flow, params, lambda: check_runs("worker"))


def replace_process(arguments: Sequence[str]) -> NoReturn:
    """Replace this process with another Python module's."""
    os.chdir(ROOT)
    os.execv(sys.executable, [sys.executable, "-m", *arguments])


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    command = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    commands = command.add_subparsers(dest="command", required=True)
    reproduce = commands.add_parser("run", prog="make flow")
    sweep = commands.add_parser("sweep", prog="make sweep")
    sweep.add_argument("table", metavar="TABLE")
    for flow in (reproduce, sweep):
        flow.add_argument("overrides", nargs="*", type=parse_override, metavar="NAME=VALUE")
    for name in ("stop", "deploy", "server"):
        commands.add_parser(name)
    commands.add_parser("worker").add_argument("pool", choices=["pipelines", "remote"])
    return command


def execute(options: argparse.Namespace) -> int:
    """Execute a command; return an exit status."""
    if options.command == "stop":
        stopped = stop()
        print(f"Stopped: {', '.join(stopped)}." if stopped else "Neither server nor worker was running.")
        return 0
    if options.command in ("run", "sweep"):  # check everything before anything starts
        asked = ValueParams(overrides=dict(options.overrides))
        values = asked.render(ROOT)[1]
        check_folders(values, ROOT / "params.yaml")
        print_disk(values, ROOT)
        params = asked.model_dump(include={"overrides"})
        if options.command == "run":
            return run("reproduce", params)
        read_table(options.table)
        return run("sweep", {"table": options.table, **params})
    if options.command == "server":
        workspace.make_home()
        set_environment(own_address(), os.environ.get(CLIENT) or workspace.make_password())
        replace_process(server_command(own_address()))
    use_server(start_missing=False)
    from pipelines.flows import deployment  # noqa: PLC0415

    if options.command == "worker":
        deployment.make_pools(queues() if options.pool == "remote" else [])
        replace_process(worker_command(options.pool))
    deployment.deploy()
    return 0


if __name__ == "__main__":
    try:
        sys.exit(execute(parser().parse_args()))
    except (RuntimeError, ValueError, FileNotFoundError, httpx.HTTPError) as error:
        target = {"sweep": "sweep", "stop": "flow-stop"}.get(sys.argv[1], "flow")
        print(f"make {target}: {error}", file=sys.stderr)
        sys.exit(2)
