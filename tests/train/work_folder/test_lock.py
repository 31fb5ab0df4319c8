"""Two trainings never write to one folder at a time."""

import queue
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from convs2s.train.work_folder import hold


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
