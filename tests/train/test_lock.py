"""Two trainings never write to one folder at a time."""

import errno
import fcntl
import os
import queue
import socket
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from convs2s.train.lock import hold


def free(folder: Path) -> bool:
    """Return whether the lock is free now."""
    with (folder / "lock").open("r+") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


@pytest.mark.fault("concurrency")
def test_the_second_waits_and_says_for_whom(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message has process, machine and time; the second continues as soon as the first ends."""
    order = []
    said = queue.SimpleQueue[str]()  # capsys may lose what a thread writes while it is read
    monkeypatch.setattr(sys, "stderr", SimpleNamespace(write=said.put, flush=lambda: None))

    def second() -> None:
        with hold(tmp_path / "work"):
            order.append("second")

    with hold(tmp_path / "work"):
        thread = threading.Thread(target=second)
        thread.start()
        message = said.get(timeout=20)
        order.append("first")
    thread.join(10)
    assert order == ["first", "second"]
    assert f"is in use by process {os.getpid()} on {socket.gethostname()}, since 20" in message
    assert "Waiting" in message
    assert free(tmp_path / "work")


@pytest.mark.fault("concurrency")
def test_an_error_and_a_started_program_leave_it_free(tmp_path: Path) -> None:
    """A program that outlives the holder must not keep others out."""
    program = "print('started', flush=True); input()"
    with pytest.raises(ZeroDivisionError), hold(tmp_path):
        child = subprocess.Popen(
            [sys.executable, "-c", program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            close_fds=False,
        )
        assert not free(tmp_path)
        _ = 1 / 0
    with child:
        assert child.stdout is not None
        assert child.stdout.readline() == "started\n"
        assert free(tmp_path)
        child.communicate("\n")


def test_the_holder_s_note_is_that_of_the_last_one(tmp_path: Path) -> None:
    """There is one line, however many holders there were."""
    for _ in range(3):
        with hold(tmp_path):
            pass
    assert len((tmp_path / "lock").read_text().splitlines()) == 1


def test_without_locks_there_is_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Some network file systems have no locks; a failing disk, however, is an error."""
    number = errno.ENOSYS

    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with hold(tmp_path):
        pass
    assert f"Warning: {tmp_path} cannot be locked (Function not implemented)" in capsys.readouterr().err
    number = errno.EIO
    with pytest.raises(OSError, match="Input/output error"), hold(tmp_path):
        pytest.fail("held")
