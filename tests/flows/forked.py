"""Python programs as forks of a process that has imported Prefect: the import takes longer than most tests.

This module imports nothing of the project, so that a program gets the code of its own repository.
"""

import functools
import multiprocessing
import os
import signal
import sys
from multiprocessing.context import ForkServerContext
from pathlib import Path

# What the flows import of others; a program begins as a copy of a process that has imported these.
LIBRARIES = [
    "prefect",
    "prefect.flow_engine",
    "prefect.task_engine",
    "prefect.task_runners",
    "prefect.events",
]
LIBRARIES += ["prefect.runner", "prefect.artifacts", "prefect.deployments", "prefect.automations"]
LIBRARIES += ["prefect.deployments.flow_runs", "prefect.utilities.visualization", "fastapi.encoders"]
LIBRARIES += ["pandas", "matplotlib.figure", "httpx", "psutil", "ruamel.yaml", "networkx", "pytest"]
LIBRARIES += ["dvc.repo", "dvc.lock"]


class Program:
    """Like `subprocess.Popen`: runs `code` in a folder, in a session of its own."""

    def __init__(self, code: str, arguments: list[str], folder: Path, env: dict[str, str], log: Path) -> None:
        self.process = context().Process(target=run, args=(code, arguments, folder, env, log))
        self.process.start()
        assert self.process.pid
        self.pid = self.process.pid

    def poll(self) -> int | None:
        """Return the exit status if it has ended."""
        return self.process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """Wait until it ends; return the exit status.

        Raises:
            TimeoutError: if it is still running after `timeout` seconds.
        """
        self.process.join(timeout)
        if self.process.exitcode is None:
            raise TimeoutError(f"process {self.pid} has not ended within {timeout} s")
        return self.process.exitcode

    def kill(self) -> None:
        """Send it SIGKILL."""
        self.process.kill()


@functools.cache
def context() -> ForkServerContext:
    """Return a multiprocessing context that forks a process with the imports already done."""
    server = multiprocessing.get_context("forkserver")
    server.set_forkserver_preload(LIBRARIES)
    return server


def run(code: str, arguments: list[str], folder: Path, env: dict[str, str], log: Path) -> None:
    """Become the program `python -c CODE ARGUMENTS`."""
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
