"""A stage through DVC as a child process: its outcome, and how it ends."""

import os
import sys
import time
from pathlib import Path

import pytest

from pipelines.flows.dvc_stage import (
    GuardedRunner,
    StageEnded,
    StageFailed,
    Stop,
    environment,
    without_secrets,
)
from tests.flows import toy


def bring(repo: Path, name: str, force: bool = False) -> str:
    runner = GuardedRunner(repo, environment(None), 60, Stop(), lambda _: None)
    return runner.reproduce(name, *["--force"] * force)


def test_dvcs_messages_are_recognized(tmp_path: Path) -> None:
    """The states in the UI depend on DVC's messages, which DVC may change."""
    repo = toy.make(tmp_path / "toy")
    assert bring(repo, "download") == "Executed"
    assert bring(repo, "download") == "Unchanged"
    assert bring(repo, "train@2") == "Executed"
    (repo / "dvc.lock").unlink()
    assert bring(repo, "train@2") == "Cached"
    assert bring(repo, "train@2", force=True) == "Executed"
    assert toy.ran(repo) == ["download", "train@2", "train@2"]


@pytest.mark.parametrize(
    ("said", "outcome"),
    [
        (
            ["Pulling data for stage: 'a'", "Unable to pull data for stage: 'a'", "Running stage 'a':"],
            "Executed",
        ),
        (["Pulling data for stage: 'a'", "Data and pipelines are up to date."], "Cached"),
        (["Verifying outputs in frozen stage: 'a'"], "Unchanged"),
    ],
)
def test_a_stage_that_ran_is_executed_whatever_else_dvc_says(
    said: list[str], outcome: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DVC runs a stage after failing to pull its data, and never runs a frozen one."""
    monkeypatch.setattr(GuardedRunner, "run", lambda *_: said)
    runner = GuardedRunner(toy.ROOT, {}, 60, Stop(), lambda _: None)
    assert runner.reproduce("a") == outcome
    said[:] = ["DVC speaks another language."]
    with pytest.raises(StageFailed, match="does not say whether it ran"):
        runner.reproduce("a")


def play(code: str, seconds: float = 30) -> list[str]:
    heard = list[str]()
    runner = GuardedRunner(toy.ROOT, environment(None), seconds, Stop(), heard.append)
    assert runner.run(sys.executable, "-uc", code) == heard
    return heard


def test_lines_arrive_one_by_one_and_bars_are_dropped() -> None:
    """The hundreds of states of a progress bar would make the log unreadable."""
    code = r"""
import sys
sys.stdout.buffer.write("\repoch 1:  0%| | 0/2\repoch 1: 50%|# | 1/2\repoch 1: 100%|##| 2/2\n".encode())
sys.stdout.buffer.write(b"tokenize: 40.0k lines [00:03, 11.6k lines/s]\r")
sys.stdout.buffer.write("\x1b[31mred\x1b[0m \xe4\n".encode() + b"\xff bad\n\n  \nno end".replace(b"\\", b""))
"""
    assert play(code) == ["red ä", "\N{REPLACEMENT CHARACTER} bad", "no end"]


def test_it_is_stopped_at_its_deadline() -> None:
    """A download that hangs must not hang the run, nor may the full pipe of one that floods its log."""
    start = time.monotonic()
    with pytest.raises(StageEnded, match=r"(?s)was ended at its deadline, 0\.000\d* h\..*flood"):
        play("while True: print('flood' * 1000)", seconds=1.5)
    assert time.monotonic() - start < 20


def test_secrets_are_hidden() -> None:
    """Logs are stored on a server that other people may read."""
    assert (
        without_secrets("fetch https://me:pw@host/x and s3://key:word@b")
        == "fetch https://***@host/x and s3://***@b"
    )
    assert without_secrets("url?token=abc&x=1 PASSWORD=hunter2") == "url?token=***&x=1 PASSWORD=***"
    assert (
        without_secrets("mail a@b, 3 tokens/s, https://host/a@b") == "mail a@b, 3 tokens/s, https://host/a@b"
    )


def test_a_stage_sees_neither_prefects_password_nor_other_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stage does not use the server, and must not use GPUs leased to others."""
    monkeypatch.setenv("PREFECT_API_AUTH_STRING", "admin:pw")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1,2,3")
    assert not [name for name in environment([1, 3]) if name.startswith("PREFECT_")]
    assert environment([1, 3])["CUDA_VISIBLE_DEVICES"] == "1,3"
    assert environment([])["CUDA_VISIBLE_DEVICES"] == ""
    assert environment(None)["CUDA_VISIBLE_DEVICES"] == "0,1,2,3"
    assert environment(None)["PATH"].split(os.pathsep)[0] == str(Path(sys.executable).parent)
