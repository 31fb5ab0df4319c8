"""One stage item through DVC, as a child process that never outlives the flow."""

import contextlib
import enum
import io
import os
import re
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

DVC = (sys.executable, "-m", "dvc")
LAST_LINES = 12
"""Lines of a failed stage's output that its state message shows."""
POLL = 0.5
"""Seconds between two checks of deadline and cancellation."""


class Outcome(enum.Enum):
    """What DVC did with a stage; the value is the name of its Prefect state."""

    EXECUTED = "Executed"
    UNCHANGED = "Unchanged"
    CACHED = "Cached"


class StageFailed(RuntimeError):
    """A stage failed; the message has its last lines."""


class StageEnded(RuntimeError):
    """A stage was ended by the flow, for its deadline or a cancellation."""


class WorkerGone(StageEnded):
    """The worker that had started the flow has died; its stages were ended."""


# How DVC says what it did. Its `pull` says "didn't change" of outputs that it has just fetched.
SAID = {
    re.compile(r"^Running stage '.*':$"): Outcome.EXECUTED,
    re.compile(r"^Stage '.*' is cached - skipping run, checking out outputs$"): Outcome.CACHED,
    re.compile(r"^Stage '.*' didn't change, skipping$"): Outcome.UNCHANGED,
}
BAR = re.compile(r"\d+%\|.*\|")
"""A progress bar; its last state ends like any other line."""
HINTS = re.compile(
    r"^(To track the changes with git, run:|\s+git add .*|To enable auto staging, run:"
    r"|\s+dvc config core\.autostage true|Data and pipelines are up to date\."
    r"|Use `dvc push` to send your updates to remote storage\.)$"
)
"""What DVC says after each stage, about all stages or as advice."""
ADDRESS = re.compile(r"(?<=://)[^/@\s]+@")
SECRET = re.compile(r"""(?i)((?:password|token|secret|access_key)\w*(?:=|["']\s*:\s*)["']?)[^\s&"',]+""")
COLORS = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


def without_secrets(line: str) -> str:
    """Hide users and passwords of addresses, and what follows password=, token=, secret= or "token":."""
    return SECRET.sub(r"\1***", ADDRESS.sub("***@", line))


def environment(gpus: Sequence[int] | None) -> dict[str, str]:
    """Return the environment of a stage: the flow's own, less Prefect's, with the GPUs it may use.

    Args:
        gpus: leased ids; empty hides all; None leaves CUDA_VISIBLE_DEVICES as it is.
    """
    # PREFECT_API_AUTH_STRING is a secret, and a stage knows nothing of Prefect.
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    kept |= {"DVC_NO_ANALYTICS": "1", "PYTHONUNBUFFERED": "1"}
    # Stages side by side share cores. Fewer threads would round sums differently than `dvc repro`;
    # threads that sleep while they wait cost each other nothing.
    kept.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    # `dvc` and the `python` of dvc.yaml are those of the flow, however the worker was started.
    kept["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), kept.get("PATH", os.defpath)])
    if gpus is not None:
        kept["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"  # CUDA then counts as nvidia-smi does
        kept["CUDA_VISIBLE_DEVICES"] = ",".join(map(str, gpus))
    return kept


def run_guarded(
    arguments: Sequence[str],
    root: Path,
    env: Mapping[str, str],
    seconds: float,
    stop: threading.Event,
    on_line: Callable[[str], None],
) -> str:
    """Run a command under the process guard; return its last lines.

    Args:
        seconds: deadline.
        stop: set by another thread to end the command.
        on_line: called with each line as it comes; not with states of progress bars.

    Raises:
        StageFailed: if it ends with a status other than 0.
        StageEnded: if `stop` was set or the deadline has passed; none of its processes is left then.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", "pipelines.flows.guard", *arguments],
        cwd=root,
        env={**env, "PYTHONPATH": os.pathsep.join(filter(None, [str(root), env.get("PYTHONPATH", "")]))},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,  # Prefect kills the flow's process group; the guard must outlive that
    )
    assert process.stdin is not None and process.stdout is not None
    pipe, over, reasons = process.stdin, threading.Event(), list[str]()
    deadline = time.monotonic() + seconds

    def close_pipe() -> None:
        while not over.wait(POLL):
            if stop.is_set():
                reasons.append("was ended, for the flow run is cancelled or has ended")
            elif time.monotonic() > deadline:
                reasons.append(f"was ended at its deadline, {seconds / 3600:g} hours")
            if reasons:
                break
        with contextlib.suppress(OSError):
            pipe.close()

    closing = threading.Thread(target=close_pipe, daemon=True)
    closing.start()
    last: deque[str] = deque(maxlen=LAST_LINES)
    # With newline="", a line also ends at a carriage return, as states of a progress bar do, and keeps it.
    with io.TextIOWrapper(process.stdout, encoding="utf-8", errors="replace", newline="") as lines:
        try:
            for line in lines:
                clean = without_secrets(COLORS.sub("", line).rstrip())
                if clean and not (line.endswith("\r") or BAR.search(clean) or HINTS.match(clean)):
                    on_line(clean)
                    last.append(clean)
        finally:
            over.set()
            closing.join()
            for _ in lines:
                pass  # a full pipe would keep what is being ended from ending
            status = process.wait()
    tail = "\n".join(last)
    if reasons:
        raise StageEnded(f"{reasons[0]}. Its last lines:\n{tail}")
    if status != 0:
        raise StageFailed(f"ended with status {status}. Its last lines:\n{tail}")
    return tail


def reproduce(
    name: str,
    root: Path,
    env: Mapping[str, str],
    seconds: float,
    stop: threading.Event,
    on_line: Callable[[str], None],
    options: Sequence[str] = (),
) -> Outcome:
    """Bring one stage item up to date through DVC; return what that took.

    Args:
        options: of `dvc repro`: --force, --pull.

    Raises:
        StageFailed: if it failed, or DVC did not say what it did.
        StageEnded: if it was cancelled or its deadline passed.
    """
    outcomes: list[Outcome] = []

    def note_outcome(line: str) -> None:
        outcomes.extend(outcome for pattern, outcome in SAID.items() if pattern.match(line))
        on_line(line)

    # --single-item, for the flow orders the stages; and without it DVC would lock what others are writing.
    command = [*DVC, "--wait-for-lock", "repro", "--single-item", *options, name]
    tail = run_guarded(command, root, env, seconds, stop, note_outcome)
    if not outcomes:
        raise StageFailed(f"succeeded, but DVC did not say what it did:\n{tail}")
    return outcomes[-1]
