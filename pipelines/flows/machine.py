"""Prefect on one machine: `make flow` starts what is missing and runs the pipeline, `make flow-stop` ends it.

    python -m pipelines.flows.machine run [NAME=VALUE ...]
    python -m pipelines.flows.machine sweep TABLE [NAME=VALUE ...]   # experiments/tables/TABLE.yaml
    python -m pipelines.flows.machine stop
    python -m pipelines.flows.machine deploy           # onto the server that PREFECT_API_URL names
    python -m pipelines.flows.machine worker POOL      # in the foreground, for services and batch systems

Server, worker and what they log live in .prefect/ of the clone. With PREFECT_API_URL set, that server is
used, and never started or stopped.
"""

import argparse
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import psutil

from pipelines.flows.workspace import ROOT

HOME = ROOT / ".prefect"
PORT = 4200
WAIT = 90.0
"""Seconds to wait for a server or worker to come up."""
DEFAULTS = {
    "PREFECT_HOME": str(HOME),
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "DO_NOT_TRACK": "1",
    "PREFECT_SERVER_ALLOW_EPHEMERAL_MODE": "false",  # a server that is missing is an error, not a new one
    "PREFECT_WORKER_QUERY_SECONDS": "2",  # else a run begins after 13 s
    "PREFECT_FLOWS_HEARTBEAT_FREQUENCY": "30",  # for the automation that finds the dead
    "PREFECT_CLIENT_MAX_RETRIES": "8",  # 2, 4, 8, ... s: a server that restarts may be away for minutes
    "PREFECT_LOGGING_TO_API_WHEN_MISSING_FLOW": "ignore",
}


class Failure(RuntimeError):
    """Something of Prefect did not come up; the message says where to look."""


def settings() -> dict[str, str]:
    """Return the environment of server, worker and flows: the user's settings before ours.

    The port is that of our server, if one runs; else FLOW_PORT.
    """
    port = (HOME / "port").read_text(encoding="utf-8") if running("server") else os.environ.get("FLOW_PORT")
    ours = DEFAULTS | {"PREFECT_API_URL": f"http://127.0.0.1:{port or PORT}/api"}
    return {**ours, **os.environ}


def settings_of_a_server_that_answers() -> dict[str, str]:
    """Return the environment.

    Raises:
        Failure: if no server answers.
    """
    env = settings()
    if not answers(env):
        raise Failure(
            f"no Prefect server answers at {env['PREFECT_API_URL']}. Set PREFECT_API_URL to its address."
        )
    return env


def run(flow: str, params: Mapping[str, Any]) -> int:
    """Start what is missing, run a flow and follow it to its end; return an exit status."""
    start, env = time.monotonic(), settings()
    HOME.mkdir(exist_ok=True)
    if not running("server") and not (os.environ.get("PREFECT_API_URL") and answers(env)):
        start_server(env)
    os.environ.update(env)  # before Prefect is loaded, for it reads its settings once
    from pipelines.flows import deployment  # noqa: PLC0415

    deployment.deploy()
    start_worker(env)
    print(f"Prefect is ready after {time.monotonic() - start:.0f} s.", flush=True)
    return deployment.trigger_and_follow(flow, params, check_worker)


def parse_overrides(texts: Sequence[str]) -> dict[str, Any]:
    """Read NAME=VALUE, values as in params.yaml.

    Raises:
        Failure: if one has another form.
    """
    from ruamel.yaml import YAML  # noqa: PLC0415

    found = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise Failure(f"found {text!r}, wanted NAME=VALUE, for example train.dropout=0.3")
        found[name] = YAML(typ="safe", pure=True).load(value)
    return found


def check_table(name: str) -> None:
    """See that experiments/tables/ has this table, before anything is started.

    Raises:
        Failure: if not, or its file has faults.
    """
    from pipelines.results.paper import read_table  # noqa: PLC0415

    try:
        read_table(name, ROOT / "experiments" / "tables")
    except (FileNotFoundError, ValueError) as error:
        raise Failure(str(error)) from error


def answers(env: dict[str, str]) -> bool:
    """Tell whether a Prefect server is there."""
    try:
        with urllib.request.urlopen(env["PREFECT_API_URL"].rstrip("/") + "/health", timeout=5) as answer:
            return bool(answer.status == 200)
    except urllib.error.HTTPError as error:
        if error.code == 401:  # it asks for a password; the client has it or will say so
            return True
        raise Failure(f"{env['PREFECT_API_URL']} is no Prefect server: it answers {error}") from error
    except (urllib.error.URLError, OSError):
        return False


def start_server(env: dict[str, str]) -> None:
    """Start the server on loopback and wait until it answers.

    Raises:
        Failure: if it does not, or someone else has its port.
    """
    if os.environ.get("PREFECT_API_URL"):
        raise Failure(
            f"PREFECT_API_URL is {env['PREFECT_API_URL']}, but no server answers there. Start it, or unset "
            "PREFECT_API_URL to have one started here."
        )
    port = env["PREFECT_API_URL"].split(":")[2].split("/")[0]
    with socket.socket() as probe:
        if probe.connect_ex(("127.0.0.1", int(port))) == 0:
            raise Failure(
                f"port {port} is taken, perhaps by the Prefect server of another clone. Choose another: "
                f"make flow FLOW_PORT={int(port) + 1}, or set PREFECT_API_URL to use the server there."
            )
    print(f"Starting the Prefect server on 127.0.0.1:{port} ...", flush=True)
    command = ["prefect", "server", "start", "--host", "127.0.0.1", "--port", port]
    (HOME / "port").write_text(port, encoding="utf-8")
    process = start_detached("server", command, env)
    wait_until(lambda: answers(env), "server", process)


def start_worker(env: dict[str, str]) -> None:
    """Start a worker of the pool `gpu` unless ours runs; it takes its runs within seconds."""
    if running("worker"):
        serves = (HOME / "worker.server").read_text(encoding="utf-8")
        if serves != env["PREFECT_API_URL"]:
            raise Failure(f"the worker of this clone serves {serves}. End it first: make flow-stop")
        return
    (HOME / "worker.server").write_text(env["PREFECT_API_URL"], encoding="utf-8")
    print("Starting a worker ...", flush=True)
    start_detached("worker", worker_command("gpu"), env)


def worker_command(pool: str) -> list[str]:
    """Return the arguments of Python that start a worker.

    It takes one run at a time, for a clone is one workspace. A run that waits shows as Late meanwhile.
    """
    name = f"{socket.gethostname()} {ROOT.name}"
    return ["prefect", "worker", "start", "--pool", pool, "--type", "process", "--limit", "1", "--name", name]


def become_worker(pool: str) -> None:
    """Replace this process by a worker of a pool, on the server that PREFECT_API_URL names.

    Raises:
        Failure: if it names none that answers.
    """
    env = settings_of_a_server_that_answers()
    HOME.mkdir(exist_ok=True)
    os.chdir(ROOT)
    os.execve(sys.executable, [sys.executable, "-m", *worker_command(pool)], env)


def deploy() -> None:
    """Register pools, automation and deployments on the server that PREFECT_API_URL names.

    Raises:
        Failure: if it names none that answers.
    """
    env = settings_of_a_server_that_answers()
    os.environ.update(env)
    from pipelines.flows import deployment  # noqa: PLC0415

    deployment.deploy()


def check_worker() -> None:
    """See that there is still somebody to take a run.

    Raises:
        Failure: if the worker has ended, with the last lines of its log.
    """
    if not running("worker"):
        raise Failure(f"the worker has ended; {ending('worker')}")


def ending(name: str) -> str:
    """Return the last lines of a program's log."""
    log = HOME / f"{name}.log"
    tail = "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-15:])
    return f"{log} ends with:\n{tail}"


def start_detached(name: str, command: Sequence[str], env: dict[str, str]) -> subprocess.Popen[bytes]:
    """Start a program that outlives this one; its output goes to .prefect/NAME.log."""
    program = [sys.executable, "-m", *command]
    with (HOME / f"{name}.log").open("ab") as log:
        process = subprocess.Popen(
            program,
            cwd=ROOT,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    identity = {"pid": process.pid, "started": psutil.Process(process.pid).create_time()}
    (HOME / f"{name}.json").write_text(json.dumps(identity), encoding="utf-8")
    return process


def running(name: str) -> psutil.Process | None:
    """Return the program that was started under this name, if it still runs.

    Its time of birth tells it from another program that has got its number since.
    """
    try:
        identity = json.loads((HOME / f"{name}.json").read_text(encoding="utf-8"))
        process = psutil.Process(identity["pid"])
    except (OSError, ValueError, psutil.NoSuchProcess):
        return None
    same = abs(process.create_time() - identity["started"]) < 1 and process.status() != psutil.STATUS_ZOMBIE
    return process if same else None


def wait_until(ready: Callable[[], bool], name: str, process: subprocess.Popen[bytes]) -> None:
    """Wait for something.

    Raises:
        Failure: if the program ended or the time is over, with the last lines of its log.
    """
    deadline = time.monotonic() + WAIT
    while not ready():
        if process.poll() is not None or time.monotonic() > deadline:
            raise Failure(f"the Prefect {name} did not come up; {ending(name)}")
        time.sleep(0.2)


def stop() -> int:
    """End the worker, with the flow runs it has, and the server; return how many were ended."""
    ended = 0
    for name in ("worker", "server"):
        process = running(name)
        if process is not None:
            ended += 1
            family = [process, *process.children(recursive=True)]
            for member in family:
                with contextlib.suppress(psutil.NoSuchProcess):
                    member.send_signal(signal.SIGTERM)
            _, left = psutil.wait_procs(family, timeout=10)
            for member in left:
                with contextlib.suppress(psutil.NoSuchProcess):
                    member.kill()
        (HOME / f"{name}.json").unlink(missing_ok=True)
    return ended


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    command = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    commands = command.add_subparsers(dest="command", required=True)
    commands.add_parser("run").add_argument("overrides", nargs="*", metavar="NAME=VALUE")
    of_table = commands.add_parser("sweep")
    of_table.add_argument("table", metavar="TABLE")
    of_table.add_argument("overrides", nargs="*", metavar="NAME=VALUE")
    commands.add_parser("stop")
    commands.add_parser("deploy")
    commands.add_parser("worker").add_argument("pool", choices=["gpu", "remote"])
    return command


def main() -> int:
    """Command line."""
    options = parser().parse_args()
    try:
        if options.command == "run":
            return run("reproduce", {"overrides": parse_overrides(options.overrides)})
        if options.command == "sweep":
            check_table(options.table)
            overrides = parse_overrides(options.overrides)
            return run("sweep", {"table": options.table, "overrides": overrides})
        if options.command == "worker":
            become_worker(options.pool)
        elif options.command == "deploy":
            deploy()
        else:
            print(f"Ended: {stop()} of server and worker.")
        return 0
    except Failure as failure:
        print(f"make flow: {failure}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
