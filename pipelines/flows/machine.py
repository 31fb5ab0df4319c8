"""Prefect on one machine: `make flow` starts it and runs the pipeline, `make flow-stop` stops it.

`make flow-status` and `make flow-follow` show what runs.

`python -m pipelines.flows.machine server` and `worker POOL` run these in the foreground, for services and
batch systems; `deploy` registers the flows on the server at PREFECT_API_URL.

Database, logs and password live in .prefect/ of the clone. If PREFECT_API_URL is set, that server is used,
and never started or stopped. Server, worker and flow runs are identified by their PREFECT_HOME.
"""

import argparse
import contextlib
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, get_args
from uuid import UUID

import httpx
import psutil

from convs2s.base.messages import redact
from pipelines.check import check_folders, check_git, check_merge, describe_reach
from pipelines.flows import workspace
from pipelines.flows.addresses import check_address, drop_unusable_proxies
from pipelines.flows.form import RunParams
from pipelines.flows.resources import visible_gpus
from pipelines.flows.workspace import HOME, ROOT
from pipelines.later_keys import check_record
from pipelines.sweep_table import read_table

SERVER = ["pipelines.flows.server"]
WORKER = ["prefect", "worker", "start", "--pool"]
NOT_PREFECT = -1
MEANINGS = {0: "no answer", NOT_PREFECT: "not Prefect's API, whose address ends in /api"}
MEANINGS |= dict.fromkeys((301, 302, 307, 308), "a redirect: expected the address that it leads to")
TARGETS = ("stop", "status", "follow", "notify")  # of the Makefile, with flow- before them
PORT = os.environ.get("FLOW_PORT") or "4200"
ADDRESS = f"http://127.0.0.1:{PORT}/api"  # of a server started in this clone


def settings(address: str, password: str) -> dict[str, str]:
    """Return the settings of Prefect's programs that prefect.toml cannot have."""
    return {
        "PREFECT_API_URL": address,
        "PREFECT_API_AUTH_STRING": password,
        "PREFECT_SERVER_API_AUTH_STRING": password,
        "PREFECT_SERVER_CORS_ALLOWED_ORIGINS": address.removesuffix("/api"),
        "PREFECT_HOME": str(HOME),
        # Of Prefect's logging.yml: what makes the formatter of servers, workers and runs.
        "PREFECT_LOGGING_FORMATTERS_STANDARD_": "pipelines.flows.addresses.make_formatter",
        "DO_NOT_TRACK": "1",
        "USER": psutil.Process().username(),  # DVC fails without, as in docker run --user 1234
    }


def check_environment() -> None:
    """Check the settings that users give us in variables; those that are empty count as unset.

    Prefect checks its own settings.
    """
    for name in [name for name, value in os.environ.items() if name.startswith("PREFECT_") and not value]:
        del os.environ[name]
    if not re.fullmatch(r"[0-9]{1,5}", PORT) or not 1 <= int(PORT) <= 65535:
        raise ValueError(f"FLOW_PORT: expected a port from 1 to 65535, found {PORT!r}.")
    if address := os.environ.get("PREFECT_API_URL"):
        check_address("PREFECT_API_URL", address, ADDRESS, may_have_secrets=False)
        os.environ["PREFECT_API_URL"] = address.rstrip("/")
    workspace.check_password("PREFECT_API_AUTH_STRING", os.environ.get("PREFECT_API_AUTH_STRING", "a:b"))
    for sentence in drop_unusable_proxies():
        print(sentence, file=sys.stderr)


def set_environment(address: str, password: str) -> None:
    """Set the environment of this process and its children; the user's settings take precedence.

    The exceptions are those that would make us act on something other than this clone: Prefect's own folder
    and profiles, the variables of git's hooks, and a proxy for what is on this machine.
    """
    os.chdir(ROOT)  # where prefect.toml is
    for name in (
        *workspace.OF_ANOTHER_REPOSITORY,
        "PREFECT_HOME",
        "PREFECT_PROFILE",
        "PREFECT_PROFILES_PATH",
    ):
        os.environ.pop(name, None)
    for name in ("no_proxy", "NO_PROXY"):
        os.environ[name] = ",".join(filter(None, [os.environ.get(name), "127.0.0.1", "localhost", "::1"]))
    chosen = {name: value for name, value in settings(address, password).items() if value}
    os.environ.update({**chosen, **os.environ})
    # Runs start in another folder. The environment's own path may be that of another clone.
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))


def use_server(start_missing: bool) -> None:
    """Set the environment of this process and its children; raise a RuntimeError if no server answers."""
    workspace.make_home()
    address = os.environ.get("PREFECT_API_URL")
    is_chosen = address is not None
    may_start = start_missing and address is None
    if not address:
        server = running("server")  # perhaps on another port
        address = server.environ()["PREFECT_API_URL"] if server else ADDRESS
    set_environment(address, workspace.make_password() if may_start else workspace.read_password())
    if may_start and not status(address):
        start_server(address)
    if (found := status(address)) != httpx.codes.OK:
        advice = "Is it running, and does it answer promptly?"
        if found == httpx.codes.UNAUTHORIZED:
            advice = "Copy that file from the clone that started the server."
        elif found:
            advice = "Does another program answer there, or a proxy, or is the address incomplete?"
        start = "Or unset PREFECT_API_URL: `make flow`" if is_chosen else "`make flow`"
        raise RuntimeError(
            f"{address}: expected a Prefect server that accepts the password in .prefect/password, found "
            f"status {found} ({MEANINGS.get(found, 'of HTTP')}). {advice} {start} starts one, with "
            "FLOW_PORT=4201 on another port."
        )


def status(address: str) -> int:
    """Return the HTTP status with which a Prefect server answers our password; 0 if none answers."""
    name, _, password = os.environ.get("PREFECT_API_AUTH_STRING", "").partition(":")
    try:
        answer = httpx.get(f"{address}/admin/version", auth=(name, password), timeout=5)
    except httpx.HTTPError:
        return 0
    is_json = answer.headers.get("content-type", "").startswith("application/json")
    return answer.status_code if is_json or not answer.is_success else NOT_PREFECT


def server_command(address: str) -> list[str]:
    """Return the module and arguments that start a server on loopback."""
    return [*SERVER, "--host", "127.0.0.1", "--port", str(httpx.URL(address).port)]


def queues() -> list[str]:
    """Return the work queues of the pool `remote`, one for each number of GPUs that this machine has."""
    return [f"gpus-{gpus}" for gpus in range(len(visible_gpus()) + 1)]


def worker_command(pool: str) -> list[str]:
    """Return the module and arguments that start a worker.

    It takes one run at a time, because a clone is one workspace; runs that wait are shown as Late.
    """
    name = f"{socket.gethostname()} {ROOT.name}"
    served = [f"--work-queue={queue}" for queue in queues()] if pool == "remote" else []
    return [*WORKER, pool, "--type", "process", "--limit", "1", "--name", name, *served]


def start_server(address: str) -> None:
    """Start the server and wait until it answers; raise a RuntimeError if it exits early."""
    process = start_detached("server", server_command(address))
    while not status(address):
        if process.poll() is not None:
            raise RuntimeError(f"the server has exited; see the end of {HOME / 'server.log'}")
        time.sleep(0.2)
    password = os.environ["PREFECT_API_AUTH_STRING"]
    print(f"Password of its pages: {password} (kept in {workspace.PASSWORD})", flush=True)


def start_detached(name: str, arguments: Sequence[str]) -> "subprocess.Popen[bytes]":
    """Start a program that outlives this one; its output goes to .prefect/NAME.log."""
    print(f"Starting a {name} ...", flush=True)
    command = [sys.executable, "-m", *arguments]
    with (HOME / f"{name}.log").open("ab") as log:
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )


def own_processes() -> Iterator[psutil.Process]:
    """Yield the server, worker and flow runs of this clone that are running."""
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.environ().get("PREFECT_HOME") == str(HOME):
                yield process


def running(name: str) -> psutil.Process | None:
    """Return the server or worker that runs in this clone, if there is one."""
    expected = {"server": SERVER, "worker": [*WORKER, "pipelines"]}[name]
    for process in own_processes():
        arguments = process.cmdline()[2:]  # after python -m
        if arguments[: len(expected)] == expected:
            return process
    return None


def stop() -> bool:
    """Stop the worker with the flow runs, then the server; return whether any was running."""
    server = running("server")
    processes = list(own_processes())
    worker_and_runs = [process for process in processes if process != server]
    end_processes(worker_and_runs)
    end_processes([server] if server else [])
    return bool(processes)


def end_processes(processes: Sequence[psutil.Process]) -> None:
    """Terminate processes together; kill those that still run ten seconds later."""
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.terminate()
    _, alive = psutil.wait_procs(processes, timeout=10)
    for process in alive:
        process.kill()


def run(flow: str, params: Mapping[str, Any]) -> int:
    """Start server and worker if needed, run a flow and follow it to its end; return an exit status."""
    use_server(start_missing=True)
    from pipelines.flows import deployment  # noqa: PLC0415  # Prefect reads the environment when imported

    deployment.deploy()
    if not running("worker"):
        start_detached("worker", worker_command("pipelines"))
    return deployment.trigger_and_follow(flow, params)


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    command = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    commands = command.add_subparsers(dest="command", required=True)
    reproduce = commands.add_parser("run", prog="make flow")
    sweep = commands.add_parser("sweep", prog="make sweep")
    sweep.add_argument("table", metavar="TABLE")
    for flow in (reproduce, sweep):
        flow.add_argument("overrides", nargs="*", metavar="NAME=VALUE")
        fields = RunParams.model_fields
        flow.add_argument("--parallel", type=int, default=fields["parallel"].default)
        flow.add_argument("--remote", choices=get_args(fields["remote"].annotation), default="none")
    for name in ("stop", "deploy", "server", "status", "notify"):
        commands.add_parser(name)
    follow = commands.add_parser("follow", prog="make flow-follow")
    follow.add_argument("run", nargs="?", type=UUID, metavar="RUN=ID")
    commands.add_parser("worker").add_argument("pool", choices=["pipelines", "remote"])
    return command


def check(params: RunParams, table: str | None = None) -> None:
    """Check, before anything starts, what a run or a sweep over a table needs.

    Print what reaches beyond its folder: a launcher, and where checkpoints are copied.
    """
    check_git(ROOT)
    check_merge(ROOT)
    _, values = params.render(ROOT)
    check_folders(values, ROOT / "params.yaml")
    check_record(ROOT)
    reach = set(describe_reach(values))
    if table is not None:
        for row in read_table(table).list_rows(values.model):
            _, row_values = params.render(ROOT, row.changes)
            reach.update(describe_reach(row_values))
    for line in sorted(reach):
        print(line, flush=True)


def read_hook() -> str:
    """Ask for the address of a web hook: not an argument, which others on this machine could see."""
    print("Address of the web hook: ", end="", flush=True)
    address = sys.stdin.readline().strip()
    example = "https://hooks.example.org/services/..."
    check_address("web hook", address, example, may_have_secrets=True)
    return address


def run_command(options: argparse.Namespace) -> int:
    """Execute a command; return an exit status."""
    if options.command == "stop":
        print("Stopped." if stop() else "Neither server nor worker was running.")
        return 0
    check_environment()
    if options.command in {"run", "sweep"}:
        params = RunParams(overrides=options.overrides, parallel=options.parallel, remote=options.remote)
        if options.command == "run":
            check(params)
            return run("reproduce", params.model_dump())
        check(params, options.table)
        return run("sweep", {"table": options.table, **params.model_dump()})
    if options.command == "server":
        workspace.make_home()
        set_environment(ADDRESS, workspace.make_password())
        os.execv(sys.executable, [sys.executable, "-m", *server_command(ADDRESS)])
    hook = read_hook() if options.command == "notify" else None
    use_server(start_missing=options.command == "follow")
    from pipelines.flows import deployment  # noqa: PLC0415
    from pipelines.flows.status import print_runs  # noqa: PLC0415

    match options.command:
        case "worker":
            deployment.make_pools(queues() if options.pool == "remote" else [])
            os.execv(sys.executable, [sys.executable, "-m", *worker_command(options.pool)])
        case "follow":
            return deployment.follow_unfinished(options.run)
        case "status":
            print_runs()
        case "notify":
            assert hook is not None
            deployment.notify(hook)
        case "deploy":
            deployment.deploy()
    return 0


if __name__ == "__main__":
    try:
        sys.exit(run_command(parser().parse_args()))
    except (RuntimeError, ValueError, OSError, httpx.HTTPError) as error:
        command = sys.argv[1]
        target = {"sweep": "sweep"}.get(command, f"flow-{command}" if command in TARGETS else "flow")
        print(f"make {target}: {redact(str(error))}", file=sys.stderr)
        sys.exit(2)
