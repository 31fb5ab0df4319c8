"""A stage through DVC as a child process: its outcome, and how it ends."""

import os
import sys
import time
from pathlib import Path

import pytest

from pipelines.flows import dvc_stage
from pipelines.flows.dvc_stage import GuardedRunner, StageEnded, Stop, environment
from tests.flows import toy


def test_dvcs_messages_are_recognized(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The states in the UI depend on DVC's messages, which DVC may change."""

    def run(runner: GuardedRunner, *command: str) -> list[str]:
        return toy.dvc(runner.root, *command[len(dvc_stage.DVC) :]).splitlines()

    monkeypatch.setattr(GuardedRunner, "run", run)
    runner = GuardedRunner(repo, {}, 1, Stop(), print)
    assert [runner.reproduce("download") for _ in range(2)] == ["Executed", "Unchanged"]
    assert runner.reproduce("train@2") == "Executed"
    (repo / "dvc.lock").unlink()
    assert runner.reproduce("train@2") == "Cached"
    assert runner.reproduce("train@2", "--force") == "Executed"
    assert toy.ran(repo) == ["download", "train@2", "train@2"]
    said = ["Pulling data for stage: 'a'", "Unable to pull data for stage: 'a'", "Running stage 'a':"]
    monkeypatch.setattr(GuardedRunner, "run", lambda *_: said)
    assert runner.reproduce("a") == "Executed"  # after failing to pull its data


def play(code: str, seconds: float = 30) -> list[str]:
    lines = list[str]()
    runner = GuardedRunner(toy.ROOT, environment(None), seconds / 3600, Stop(), lines.append)
    assert runner.run(sys.executable, "-uc", code) == lines
    return lines


def test_lines_arrive_one_by_one_and_bars_are_dropped() -> None:
    """The hundreds of states of a progress bar would make the log unreadable."""
    code = r"""
import sys
sys.stdout.buffer.write("\repoch 1:  0%| | 0/2\repoch 1: 50%|# | 1/2\repoch 1: 100%|##| 2/2\n".encode())
sys.stdout.buffer.write(b"tokenize: 40.0k lines [00:03, 11.6k lines/s]\r")
sys.stdout.buffer.write("red \xe4\n".encode() + b"\xff bad\n\n  \nno end".replace(b"\\", b""))
"""
    assert play(code) == ["red ä", "\N{REPLACEMENT CHARACTER} bad", "no end"]


def test_it_is_stopped_at_its_deadline() -> None:
    """A download that hangs must not hang the run, nor may the full pipe of one that floods its log."""
    start = time.monotonic()
    with pytest.raises(StageEnded, match=r"(?s)was ended at its deadline, 0\.000\d* h\..*flood"):
        play("while True: print('flood' * 1000)", seconds=0.8)
    assert time.monotonic() - start < 20


def test_a_stage_sees_neither_prefects_password_nor_other_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stage does not use the server, and must not use GPUs leased to others."""
    monkeypatch.setenv("PREFECT_API_AUTH_STRING", "admin:pw")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1,2,3")
    assert not [name for name in environment([1, 3]) if name.startswith("PREFECT_")]
    assert environment([1, 3])["CUDA_VISIBLE_DEVICES"] == "1,3"
    assert environment([])["CUDA_VISIBLE_DEVICES"] == ""
    assert environment(None)["CUDA_VISIBLE_DEVICES"] == "0,1,2,3"
    assert environment(None)["PATH"].split(os.pathsep)[0] == str(Path(sys.executable).parent)
