"""Runs one stage item through DVC, in a child process that never outlives the flow."""

import dataclasses
import io
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from convs2s.base.messages import redact
from convs2s.base.parallel import cores
from pipelines.flows.process_guard import ENDED_BY_GUARD, TIMED_OUT

DVC = (sys.executable, "-m", "dvc")
SECONDS = 60.0  # without a line of output, after which a progress bar is one
LAST_LINES = 12  # of a failed stage's output, for its state message


class StageFailed(RuntimeError):
    """A stage failed; the message has the last lines of its output."""


class StageEnded(RuntimeError):
    """A stage was stopped, or not started; `state` is the name of its last state, Cancelled or TimedOut."""

    def __init__(self, message: str, state: str = "Cancelled") -> None:
        super().__init__(message)
        self.state = state


# Names of Prefect states, each with DVC's message for it (reproduce, run and run_stage in dvc/stage). If
# several match, the first in this order counts: DVC runs a stage after failing to pull its data.
OUTCOMES = {
    "Executed": re.compile(r"Running stage '.*':$|Verifying data sources in stage: "),
    "Cached": re.compile(
        r"(Stage '.*' is cached - skipping run, checking out outputs|Pulling data for stage: '.*')$"
    ),
    "Unchanged": re.compile(r"(Stage )?'.*' didn't change, skipping$|Verifying outputs in frozen stage: "),
}
ADVICE = re.compile(  # of DVC, after a stage; a flow's user need not do that for each
    r"To track the changes with git, run:|\tgit add |"
    r"To enable auto staging, run:|\tdvc config core\.autostage true|"
    r"Use `dvc push` to send your updates"
)
BAR = re.compile(r"\d+%\|.*\|")  # a progress bar's last state ends with a newline like any other line


def environment(gpus: Sequence[str] | None, sharing: int = 1) -> dict[str, str]:
    """Return the environment of a stage: that of the flow without Prefect's variables, plus its resources.

    Args:
        gpus: leased GPUs; an empty list hides all, None leaves CUDA_VISIBLE_DEVICES unchanged.
        sharing: number of processes that divide the cores among them, unless OMP_NUM_THREADS is already set.
    """
    # PREFECT_API_AUTH_STRING is a secret, and stages do not use Prefect.
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    # DVC runs commands in SHELL, which of a service's user is nologin.
    kept |= {"DVC_NO_ANALYTICS": "1", "PYTHONUNBUFFERED": "1", "SHELL": "/bin/sh"}
    # So that `python` in dvc.yaml is that of the flow, however the worker was started.
    kept["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), kept.get("PATH", os.defpath)])
    if gpus is not None:  # if they are numbers, then as in nvidia-smi
        kept |= {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": ",".join(gpus)}
    if sharing > 1:
        kept.setdefault("OMP_NUM_THREADS", str(max(1, cores() // sharing)))
    return kept


class Stop(threading.Event):
    """Set when a flow run is over; this closes the pipe that the guards of its stages read from."""

    def __init__(self) -> None:
        super().__init__()
        self.pipe, self._held = os.pipe()  # closed by the system if this process dies
        self._setting = threading.Lock()

    def set(self) -> None:
        """Stop all stages that are running; further calls have no effect."""
        with self._setting:
            if not self.is_set():
                super().set()
                os.close(self._held)


@dataclass(frozen=True)
class GuardedRunner:
    """Runs commands in a workspace, as child processes under the process guard."""

    root: Path
    env: Mapping[str, str]
    hours: float  # deadline of each command
    stop: Stop
    on_line: Callable[[str], None]  # gets each line of output, but a progress bar only after a silent minute

    def run(self, *command: str) -> list[str]:
        """Run a command, leave none of its processes behind, and return its lines of output."""
        python_path = os.pathsep.join(filter(None, [str(self.root), self.env.get("PYTHONPATH")]))
        process = subprocess.Popen(
            [sys.executable, "-m", "pipelines.flows.process_guard", str(3600 * self.hours), *command],
            cwd=self.root,
            env={**self.env, "PYTHONPATH": python_path},
            stdin=self.stop.pipe,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Prefect kills the flow's process group; the guard must survive that
        )
        assert process.stdout is not None
        printed: list[str] = []
        due = time.monotonic() + SECONDS  # when a progress bar is shown
        # With newline="", lines also end at the carriage returns of progress bars, and keep them.
        try:
            with io.TextIOWrapper(process.stdout, encoding="utf-8", errors="replace", newline="") as lines:
                for line in filter(str.strip, lines):
                    text = redact(line.rstrip())  # DVC quotes addresses of remotes
                    if ADVICE.match(text):
                        continue
                    is_bar = line.endswith("\r") or bool(BAR.search(text))
                    if not is_bar:
                        printed.append(text)
                    if not is_bar or time.monotonic() >= due:
                        due = time.monotonic() + SECONDS
                        self.on_line(text)
        except BaseException:  # the flow run is being cancelled
            self.stop.set()
            process.wait()
            raise
        status = process.wait()
        tail = "\n".join(["Its last lines:", *printed[-LAST_LINES:]])
        if status == TIMED_OUT:
            raise StageEnded(f"was ended at its deadline, {self.hours:g} h. {tail}", "TimedOut")
        if status == ENDED_BY_GUARD and self.stop.is_set():
            raise StageEnded(f"was ended because the flow run was cancelled or ended. {tail}")
        if status != 0:
            raise StageFailed(f"ended with status {status}. {tail}")
        return printed

    def reproduce(self, stage: str, *options: str) -> str:
        """Bring one stage item up to date through DVC; return how, one of OUTCOMES."""
        # --single-item: the flow orders the stages; without it, DVC would lock files that others are writing.
        lines = self.run(*DVC, "--wait-for-lock", "repro", "--single-item", *options, stage)
        for outcome, pattern in OUTCOMES.items():
            if any(map(pattern.match, lines)):
                return outcome
        raise StageFailed("succeeded, but the output of this version of DVC does not say whether it ran")

    def restore(self, stage: str) -> str | None:
        """Restore one stage item from DVC's local and remote caches; return None if it has to run instead."""
        # DVC runs commands in $SHELL. `false` exits at once, so DVC stops where it would run the stage.
        env = {**self.env, "SHELL": shutil.which("false") or "/bin/false"}
        try:
            return dataclasses.replace(self, env=env, on_line=lambda _: None).reproduce(stage, "--pull")
        except StageFailed:
            return None
