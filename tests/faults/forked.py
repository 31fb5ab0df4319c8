"""`dvc repro` in a fork of this process, its stages in forks of that one, so that imports happen only once.

Everything else is as on the command line.
"""

import os
import runpy
import shlex
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from multiprocessing.context import ForkProcess
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import dvc.cli.parser  # and with it all commands, so that no fork has to
import dvc.stage.run
import psutil
from dvc.cli import main as dvc_main

Hook = Callable[[], object]  # called in a new process to prepare a fault
Hooks = Mapping[str, Hook]  # by the stage's name; "dvc" is DVC's own process, whose stages inherit the fault


class Process(ForkProcess):
    """An action in a fork of this process, which returns its exit status; for DVC, a `subprocess.Popen`."""

    pid: int

    def __init__(self, action: Callable[[], int]) -> None:
        super().__init__(target=lambda: sys.exit(action()))
        self.start()

    def wait(self) -> int:
        """Wait for the end; return the exit status, negative after a signal."""
        self.join()
        assert self.exitcode is not None
        return self.exitcode

    communicate = wait
    returncode = ForkProcess.exitcode


def start(folder: Path, hooks: Hooks | None = None, *options: str) -> Process:
    """Start `dvc repro` in its own session; its output goes to a file next to the folder."""
    hooks = hooks or {}

    def start_stage(command: list[str], cwd: str, env: dict[str, str], **_: Any) -> Process:
        return Process(lambda: run_stage(command[-1], cwd, env, hooks.get(env["DVC_STAGE"])))

    def run() -> int:
        os.setsid()
        output = os.open(folder.with_suffix(".log"), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.chdir(folder)
        os.environ["DVC_NO_ANALYTICS"] = "1"
        hooks.get("dvc", lambda: None)()
        with mock.patch.object(dvc.stage.run, "subprocess", SimpleNamespace(Popen=start_stage)):
            return int(dvc_main(["repro", *options]))

    return Process(run)


def run_stage(command: str, cwd: str, env: dict[str, str], hook: Hook | None) -> int:
    """Run the stage's runner as `python -m` does."""
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if hook:
        hook()
    _, _, module, *arguments = shlex.split(command.replace("$DVC_STAGE", env["DVC_STAGE"]))
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
    threading._shutdown()  # type: ignore[attr-defined]  # as Python does at exit: end executors
    return 0


def left_running(folder: Path) -> list[psutil.Process]:
    """Return the processes that do not end in a repository within 75 s; kill them."""
    processes = psutil.process_iter(["cwd", "status"])
    running = [p for p in processes if p.info["cwd"] == str(folder) and p.info["status"] != "zombie"]
    alive: list[psutil.Process] = psutil.wait_procs(running, timeout=75)[1]
    for process in alive:
        process.kill()
    return alive
