"""DVC's list of readers and writers after a kill."""

import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipelines.repair import locks
from pipelines.repair.clone import repair

DAMAGED = ["", "{", '{"write": {', "[]", "null", '{"write": {"a": 3}}', '{"read": {"a": [{}]}}', "\0" * 9]


@pytest.fixture
def rwlock(tmp_path: Path) -> Path:
    """Return the path of the list in a clone that has none yet."""
    folder = tmp_path / ".dvc" / "tmp"
    folder.mkdir(parents=True)
    return folder / "rwlock"


@pytest.fixture
def dvc(tmp_path: Path) -> Iterator[int]:
    """Yield the PID of a process that looks like a DVC command in the clone."""
    code = "import sys; sys.stdin.read()"
    command = [sys.executable, "-c", code, "dvc"]
    with subprocess.Popen(command, cwd=tmp_path, stdin=subprocess.PIPE) as process:
        yield process.pid
        process.kill()


@pytest.mark.fault("damage")
@pytest.mark.parametrize("text", DAMAGED)
def test_an_unreadable_list_is_removed(text: str, rwlock: Path, tmp_path: Path) -> None:
    """With such a list every later command would fail; without one, DVC starts an empty list."""
    rwlock.write_text(text)
    (sentence,) = repair(tmp_path)
    assert sentence.endswith("was left unreadable by a kill; removed it.")
    assert not rwlock.exists()
    assert repair(tmp_path) == []


@pytest.mark.fault("concurrency")
def test_the_list_stays_while_dvc_runs(rwlock: Path, tmp_path: Path, dvc: int) -> None:
    """The running DVC still has to take itself off the list."""
    rwlock.write_text("")
    with pytest.raises(ValueError, match=rf"running in .*: process {dvc}, while .*rwlock is damaged"):
        repair(tmp_path)
    assert rwlock.exists()


@pytest.mark.fault("concurrency")
def test_a_list_that_is_being_written_is_left_alone(
    rwlock: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its writer holds the lock, even where its process cannot be seen."""
    monkeypatch.setattr(locks, "PATIENCE", 0.1)
    rwlock.write_text("")
    with rwlock.with_name("rwlock.lock").open("a") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        with pytest.raises(ValueError, match=r"it holds .*rwlock\.lock"):
            repair(tmp_path)
    assert rwlock.exists()


def test_only_entries_with_another_programs_pid_are_dropped(rwlock: Path, tmp_path: Path, dvc: int) -> None:
    """PIDs repeat after a container restarts, and DVC would wait for that program."""
    entries = {"dvc": dvc, "other": os.getpid()}
    held = {name: {"pid": pid, "cmd": "dvc repro"} for name, pid in entries.items()}
    readers = {"both": list(held.values()), "one": [held["other"]]}
    rwlock.write_text(json.dumps({"write": held, "read": readers}))
    (sentence,) = repair(tmp_path)
    assert sentence.endswith(f"named process {os.getpid()}, which is not a DVC command; dropped it.")
    wanted = {"write": {"dvc": held["dvc"]}, "read": {"both": [held["dvc"]], "one": []}}
    assert json.loads(rwlock.read_text()) == wanted


def test_a_zombie_does_not_count(rwlock: Path, tmp_path: Path) -> None:
    """A process keeps its PID after its end until its parent asks for its status."""
    with subprocess.Popen(["true"]) as process:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        rwlock.write_text(json.dumps({"write": {"a": {"pid": process.pid, "cmd": "dvc repro"}}}))
        assert len(repair(tmp_path)) == 1
        assert json.loads(rwlock.read_text())["write"] == {}


def test_a_program_in_the_clone_may_be_using_dvc(
    rwlock: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program may use DVC's Python interface, so its entries must stay."""
    monkeypatch.chdir(tmp_path)
    text = json.dumps({"write": {"a": {"pid": os.getpid(), "cmd": "dvc repro"}}})
    rwlock.write_text(text)
    assert repair(tmp_path) == []
    assert rwlock.read_text() == text
