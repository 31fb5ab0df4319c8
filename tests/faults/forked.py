"""`dvc repro` in a fork of this process, its stages in forks of that one, so that imports happen only once.

Everything else is as on the command line: DVC's own code starts each stage and waits for it, the stage's
runner runs as a program, and each is a process that can be killed.
"""

import contextlib
import functools
import importlib
import os
import runpy
import shlex
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import dvc.stage.run
import psutil
from dvc.cli import main as dvc_main

Hook = Callable[[], None]  # called in a new process to prepare a fault


def prepare(folder: Path) -> None:
    """Import what the stages import, and what DVC imports while it works in a repository."""
    from pipelines.stages.__main__ import load, stages  # noqa: PLC0415  # tests.faults.edits must not import it

    for name in stages():
        load(name)
    import_dvc(folder)


def import_dvc(folder: Path) -> None:
    """Import what DVC imports while it works in a repository.

    DVC itself runs in a fork, so that this process does not keep its open files.
    """
    names = folder.with_name("imported")

    def work() -> int:
        os.chdir(folder)
        dvc_main(["repro", "--dry", "--quiet"])  # fails, because there are no outputs yet
        names.write_text("\n".join(sys.modules))
        return 0

    assert fork(work).wait() == 0
    for name in names.read_text().split():
        with contextlib.suppress(ImportError):
            importlib.import_module(name)


@dataclass
class Process:
    """A forked process."""

    pid: int
    status: int | None = None

    def ended(self) -> bool:
        """Return whether it has ended."""
        if self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.status = os.waitstatus_to_exitcode(status) if pid else None
        return self.status is not None

    def wait(self) -> int:
        """Wait for the end; return the exit status, negative after a signal."""
        if self.status is None:
            self.status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.status


def fork(action: Callable[[], int]) -> Process:
    """Run an action in a fork of this process."""
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid:
        return Process(pid)
    status = 70
    try:
        status = action()
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else int(error.code is not None)
        if isinstance(error.code, str):
            print(error.code, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)


class ForkedStage:
    """Replaces `subprocess.Popen` in DVC: runs a stage's command in a fork."""

    def __init__(
        self, hooks: Mapping[str, Hook], command: list[str], cwd: str, env: dict[str, str], **_: Any
    ) -> None:
        self.returncode: int | None = None
        self.process = fork(lambda: self.run(hooks, command, cwd, env))

    def run(self, hooks: Mapping[str, Hook], command: list[str], cwd: str, env: dict[str, str]) -> int:
        """Run the stage's runner as `python -m` does."""
        os.chdir(cwd)
        os.environ.clear()
        os.environ.update(env)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        hooks.get(env["DVC_STAGE"], hooks.get("*", lambda: None))()
        _, _, module, *arguments = shlex.split(command[-1])
        sys.argv = [module, *arguments]
        runpy.run_module(module, run_name="__main__", alter_sys=True)
        # As Python does at exit, and multiprocessing at the end of a fork: end executors and their threads.
        threading._shutdown()  # type: ignore[attr-defined]
        return 0

    def communicate(self) -> None:
        """Wait for the end."""
        self.returncode = self.process.wait()


def start(
    folder: Path, hooks: Mapping[str, Hook] | None = None, *options: str, log: Path | None = None
) -> Process:
    """Start `dvc repro` in its own session.

    Args:
        folder: the repository.
        hooks: functions to call in a stage's process, by the stage's name; "dvc" is DVC's own process, and
            "*" any stage that is not named.
        options: options of the command.
        log: file for its output; by default, next to the repository.
    """
    hooks = hooks or {}

    def run() -> int:
        os.setsid()
        output = os.open(log or folder.with_suffix(".log"), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.chdir(folder)
        os.environ["DVC_NO_ANALYTICS"] = "1"
        hooks.get("dvc", lambda: None)()
        popen = SimpleNamespace(Popen=functools.partial(ForkedStage, hooks))
        with mock.patch.object(dvc.stage.run, "subprocess", popen):
            return int(dvc_main(["repro", *options]))

    return fork(run)


def repro(folder: Path, hooks: Mapping[str, Hook] | None = None, *options: str) -> int:
    """Run `make repro` without the report: repair, then DVC; return its exit status."""
    from pipelines.repair import repair  # noqa: PLC0415

    repair(folder)
    return start(folder, hooks, *options).wait()


def left_after(folder: Path, seconds: float) -> list[psutil.Process]:
    """Return the processes still running in a repository after some time; kill them."""
    alive = psutil.wait_procs(left(folder), timeout=seconds)[1]
    for process in alive:
        process.kill()
    return alive


def left(folder: Path) -> list[psutil.Process]:
    """Return the processes still running in a repository."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.status() != psutil.STATUS_ZOMBIE and Path(process.cwd()) == folder:
                found.append(process)
    return found
