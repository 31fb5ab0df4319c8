"""Two trainings never write to one folder at a time."""

import os
import queue
import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
from filelock import FileLock, Timeout

from convs2s.train.work_folder import hold

HOLD = """
import sys, time
from pathlib import Path
from convs2s.train.work_folder import hold
with hold(Path("work")):
    print("held", flush=True)
    time.sleep(60)
"""


def is_free(folder: Path) -> bool:
    """Return whether the lock is free now."""
    try:
        with FileLock(folder / "lock", blocking=False):
            return True
    except Timeout:
        return False


def test_the_second_waits_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """It continues as soon as the first ends."""
    order = []
    said = queue.SimpleQueue[str]()  # capsys may lose what a thread writes while it is read
    monkeypatch.setattr(sys, "stderr", SimpleNamespace(write=said.put, flush=lambda: None))

    def second() -> None:
        with hold(Path("work")):
            order.append("second")

    with hold(Path("work")):
        thread = threading.Thread(target=second)
        thread.start()
        assert said.get(timeout=20) == "work is in use by another process. Waiting for it to exit."
        order.append("first")
    thread.join(10)
    assert order == ["first", "second"]
    assert is_free(Path("work"))


def test_a_killed_process_leaves_it_free() -> None:
    """The kernel releases the lock, however the holder dies."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    with subprocess.Popen(
        [sys.executable, "-c", HOLD], stdout=subprocess.PIPE, env=environment, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        assert not is_free(Path("work"))
        holder.send_signal(signal.SIGKILL)
    assert is_free(Path("work"))
