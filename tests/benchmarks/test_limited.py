"""Parts of a report: their results are kept, even if a part fails or runs out of time."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from benchmarks.limited import Emit, run_part, run_parts


def good(emit: Emit, seconds: float) -> None:
    print("said", flush=True)
    emit({"may take": seconds})


def failing(emit: Emit, _: float) -> None:
    emit({"found": 1})
    raise ValueError("no such thing")


def endless(emit: Emit, _: float) -> None:
    """Start a process, emit its process id, and never return."""
    emit({"pid": subprocess.Popen(["sleep", "100"]).pid})
    signal.pause()


def killed(_: Emit, __: float) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def has_ended(pid: int) -> bool:
    """Return whether a process has ended, even if nothing has waited for it yet."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except OSError:
        return True
    return state == "Z"


def test_a_part_that_fails_or_takes_too_long_ends_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It keeps its results, and its processes end; later parts run, and get the remaining time."""
    parts = {
        "failing": (failing, 1.0),
        "endless": (endless, 0.2),
        "killed": (killed, 1.0),
        "good": (good, 1.0),
    }
    found = run_parts(parts, tmp_path)
    assert found["failing"].status == "failed with status 1: ValueError: no such thing"
    assert found["failing"].rows == [{"found": 1}]
    assert found["endless"].status.startswith("ended after its 1 s")
    (row,) = found["endless"].rows
    deadline = time.monotonic() + 5
    while not has_ended(row["pid"]) and time.monotonic() < deadline:
        os.sched_yield()
    assert has_ended(row["pid"])
    assert found["killed"].status.startswith("failed with status -9")
    assert found["good"].status == "done"
    assert 0 < found["good"].rows[0]["may take"] < 2.1
    assert "good: done" in capsys.readouterr().out


def test_half_a_result_is_dropped(tmp_path: Path) -> None:
    """A process may be killed while it is writing."""

    def half(emit: Emit, _: float) -> None:
        emit({"a": 1})
        with (tmp_path / "part.jsonl").open("a", encoding="utf-8") as stream:
            stream.write('{"a":')

    assert run_part(half, 5.0, tmp_path / "part").rows == [{"a": 1}]
