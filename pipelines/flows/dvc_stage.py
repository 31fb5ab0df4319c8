"""One stage item through DVC, as a child process that never outlives the flow."""

import contextlib
import enum
import os
import re
import select
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

LAST_LINES = 12
"""Lines of a failed stage's output that its state message shows."""
LOOK = 0.5
"""Seconds between two looks at deadline and cancellation."""


class Outcome(enum.Enum):
    """What DVC did with a stage; the value is the name of its Prefect state."""

    EXECUTED = "Executed"
    UNCHANGED = "Unchanged"
    CACHED = "Cached"


class StageFailed(RuntimeError):
    """A stage ended badly; the message has its last lines."""


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
"""Of a progress bar; its last state ends like any line."""
HINTS = re.compile(
    r"^(To track the changes with git, run:|\s+git add .*|To enable auto staging, run:"
    r"|\s+dvc config core\.autostage true|Data and pipelines are up to date\."
    r"|Use `dvc push` to send your updates to remote storage\.)$"
)
"""What DVC says after each stage, of all stages or as advice."""
ADDRESS = re.compile(r"(?<=://)[^/@\s]+@")
SECRET = re.compile(r"""(?i)((?:password|token|secret|access_key)\w*(?:=|["']\s*:\s*)["']?)[^\s&"',]+""")
COLORS = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


def told(line: str) -> Outcome | None:
    """Return what a line of DVC's output says it does with the stage, None if it says nothing of that."""
    return next((outcome for pattern, outcome in SAID.items() if pattern.match(line)), None)


def without_secrets(line: str) -> str:
    """Hide users and passwords of addresses, and what follows password=, token=, secret= or "token":."""
    return SECRET.sub(r"\1***", ADDRESS.sub("***@", line))


def command(name: str, force: bool, pull: bool) -> list[str]:
    """Return the DVC command for one stage item.

    --single-item, for the flow orders the stages; and without it DVC would lock what others are writing.
    """
    options = [*(["--force"] if force else []), *(["--pull"] if pull else [])]
    return [*DVC, "--wait-for-lock", "repro", "--single-item", *options, name]


DVC = (sys.executable, "-m", "dvc")


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
    hear: Callable[[str, bool], None],
) -> str:
    """Run a command under the process guard; return its last lines.

    Args:
        seconds: deadline.
        stop: set by another thread to end the command.
        hear: told of each line that says something as it comes, and whether it is one of a progress bar.

    Raises:
        StageFailed: if it ends with another status than 0.
        StageEnded: if `stop` was set or the deadline has passed; no process of it is left then.
    """
    deadline = time.monotonic() + seconds
    last: deque[str] = deque(maxlen=LAST_LINES)
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
    reason = None
    try:
        for line, passing in lines_of(process.stdout.fileno()):
            if line is not None:
                clean = without_secrets(COLORS.sub("", line).rstrip())
                bar = passing or bool(BAR.search(clean))
                if clean and not HINTS.match(clean):
                    hear(clean, bar)
                    last.extend([] if bar else [clean])
            if stop.is_set():
                reason = "was ended, for the flow run is cancelled or has ended"
            elif time.monotonic() > deadline:
                reason = f"was ended at its deadline, {seconds / 3600:g} hours"
            if reason:
                break
    finally:
        with contextlib.suppress(OSError):
            process.stdin.close()
        for _ in lines_of(process.stdout.fileno()):
            pass  # a full pipe would keep what is being ended from ending
        status = process.wait()
        process.stdout.close()
    tail = "\n".join(last)
    if reason:
        raise StageEnded(f"{reason}. Its last lines:\n{tail}")
    if status != 0:
        raise StageFailed(f"ended with status {status}. Its last lines:\n{tail}")
    return tail


def lines_of(descriptor: int) -> Iterator[tuple[str | None, bool]]:
    """Yield lines of a pipe until it closes, each with whether a carriage return ended it, as progress does.

    Yields None for a line when there was none for a while.
    """
    rest = b""
    while True:
        if not select.select([descriptor], [], [], LOOK)[0]:
            yield None, False
            continue
        chunk = os.read(descriptor, 65536)
        if not chunk:
            break
        *whole, rest = re.split(rb"(?<=[\r\n])", rest + chunk)
        for raw in whole:
            yield raw.decode("utf-8", "replace").rstrip("\r\n"), raw.endswith(b"\r")
    if rest:
        yield rest.decode("utf-8", "replace"), False


def reproduce(
    name: str,
    root: Path,
    env: Mapping[str, str],
    seconds: float,
    stop: threading.Event,
    hear: Callable[[str, bool], None],
    force: bool = False,
    pull: bool = False,
) -> Outcome:
    """Bring one stage item up to date through DVC; return what that took.

    Raises:
        StageFailed: if it failed, or DVC did not say what it did.
        StageEnded: if it was cancelled or its deadline passed.
    """
    outcomes: list[Outcome] = []

    def hear_both(line: str, passing: bool) -> None:
        if not passing and (outcome := told(line)):
            outcomes.append(outcome)
        hear(line, passing)

    tail = run_guarded(command(name, force, pull), root, env, seconds, stop, hear_both)
    if not outcomes:
        raise StageFailed(f"ended well, but DVC did not say what it did:\n{tail}")
    return outcomes[-1]
