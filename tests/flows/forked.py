"""Python programs as forks of a process that has imported Prefect: the import takes longer than most tests.

This module imports nothing of the project, so that a program gets the code of its own repository.
"""

import functools
import multiprocessing
import os
import signal
import sys
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path

# What the flows import of others; a program begins as a copy of a process that has imported these.
LIBRARIES = """prefect prefect.flow_engine prefect.task_engine prefect.task_runners prefect.events
prefect.runner prefect.artifacts prefect.deployments prefect.automations prefect.deployments.flow_runs
prefect.utilities.visualization fastapi.encoders pandas matplotlib.figure httpx psutil ruamel.yaml networkx
pytest dvc.repo dvc.lock"""


@functools.cache
def context() -> ForkServerContext:
    """Return a multiprocessing context that forks a process with the imports already done."""
    server = multiprocessing.get_context("forkserver")
    server.set_forkserver_preload(LIBRARIES.split())
    return server


def start(
    code: str, arguments: list[str], folder: Path, env: dict[str, str], log: Path
) -> "ForkServerProcess":
    """Start a program in a folder, in a session of its own."""
    process = context().Process(target=run, args=(code, arguments, folder, env, log))
    process.start()
    return process


def run(code: str, arguments: list[str], folder: Path, env: dict[str, str], log: Path) -> None:
    """Act as the program `python -c CODE ARGUMENTS`."""
    os.setsid()
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for stream in (1, 2):
        os.dup2(output, stream)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(env)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.argv = ["-c", *arguments]
    sys.path[:0] = ["", *env["PYTHONPATH"].split(os.pathsep)]
    from prefect.context import refresh_global_settings_context  # noqa: PLC0415

    refresh_global_settings_context()  # Prefect has read the environment when it was imported
    exec(compile(code, "<program>", "exec"), {"__name__": "__main__"})
