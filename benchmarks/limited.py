"""Run the parts of a report one after the other, each in its own process and with a time limit."""

import contextlib
import json
import multiprocessing
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Row = dict[str, Any]
Emit = Callable[[Row], None]
Part = Callable[[Emit, float], None]
"""Does a part; its arguments are a function to call with each result, and the time limit in seconds."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of a part.

    Attributes:
        status: `done`, or why not.
        seconds: duration.
        rows: all results until it ended.
    """

    status: str
    seconds: float
    rows: list[Row]


def run_parts(parts: Mapping[str, tuple[Part, float]], folder: Path) -> dict[str, Outcome]:
    """Run parts, each with its time limit in seconds; unused time goes to the next. Logs go to the folder."""
    found, end = {}, time.monotonic()
    for name, (part, seconds) in parts.items():
        end += seconds
        print(f"{name}: at most {end - time.monotonic():.0f} s", flush=True)
        found[name] = run_part(part, end - time.monotonic(), folder / name)
        print(f"{name}: {found[name].status}, {found[name].seconds:.1f} s", flush=True)
    return found


def run_part(part: Part, seconds: float, path: Path) -> Outcome:
    """Run a part in a process; kill it and all its children when its time is up.

    Args:
        path: of the files PATH.log and PATH.jsonl, without their suffixes.
    """
    # A fork saves importing everything again, but this process must not have used a GPU.
    process = multiprocessing.get_context("fork").Process(target=work, args=(part, seconds, path))
    begin = time.monotonic()
    process.start()
    process.join(seconds)
    status = "done"
    if process.is_alive():
        status = f"ended after its {seconds:.0f} s"
    elif process.exitcode:
        status = f"failed with status {process.exitcode}: {last_line(path)}"
    process.kill()
    process.join()
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid or 0, signal.SIGKILL)  # processes that it left behind
    return Outcome(status, time.monotonic() - begin, rows(path))


def work(part: Part, seconds: float, path: Path) -> None:
    """Do a part, as the leader of a process group; output goes to the log, results to the other file."""
    os.setsid()
    with path.with_suffix(".log").open("wb") as log:
        for output in (1, 2):
            os.dup2(log.fileno(), output)
    with path.with_suffix(".jsonl").open("w", encoding="utf-8") as stream:

        def emit(row: Row) -> None:
            stream.write(json.dumps(row) + "\n")
            stream.flush()

        try:
            part(emit, seconds)
            status = 0
        except BaseException:
            os.write(2, traceback.format_exc().encode())
            status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def rows(path: Path) -> list[Row]:
    """Return the results that a part has written; the last line may be incomplete after a kill."""
    file = path.with_suffix(".jsonl")
    lines = file.read_text(encoding="utf-8").split("\n")[:-1] if file.is_file() else []
    return [json.loads(line) for line in lines]


def last_line(path: Path) -> str:
    """Return the last line of a part's log, which has the reason of a failure."""
    lines = path.with_suffix(".log").read_text(encoding="utf-8", errors="replace").split("\n")
    return next((line for line in reversed(lines) if line.strip()), "no message")
