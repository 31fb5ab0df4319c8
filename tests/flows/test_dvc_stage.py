"""A stage through DVC as a child process: its outcome, and how it ends."""

import os
import sys
import time
from pathlib import Path

import pytest

from pipelines.flows import dvc_stage
from pipelines.flows.dvc_stage import GuardedRunner, StageEnded, Stop, environment
from tests.flows import toy


@pytest.fixture
def runner(repo: Path, monkeypatch: pytest.MonkeyPatch) -> GuardedRunner:
    """Run DVC in this process, which is faster; each stage is that of the toy repository."""

    def run(runner: GuardedRunner, *command: str) -> list[str]:
        return toy.dvc(runner.root, *command[len(dvc_stage.DVC) :]).splitlines()

    monkeypatch.setattr(GuardedRunner, "run", run)
    return GuardedRunner(repo, {}, 1, Stop(), print)


def test_dvcs_messages_are_recognized(runner: GuardedRunner) -> None:
    """The states in the UI depend on DVC's messages, which DVC may change."""
    assert [runner.reproduce("download") for _ in range(2)] == ["Executed", "Unchanged"]
    assert runner.reproduce("train@2") == "Executed"
    (runner.root / "dvc.lock").unlink()
    assert runner.reproduce("train@2") == "Cached"
    assert runner.reproduce("train@2", "--force") == "Executed"
    assert toy.ran(runner.root) == ["download", "train@2", "train@2"]


def test_a_stage_that_runs_because_its_data_cannot_be_pulled_is_executed(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DVC first says that it pulls them, as for a stage that is cached."""
    said = ["Pulling data for stage: 'a'", "Unable to pull data for stage: 'a'", "Running stage 'a':"]
    monkeypatch.setattr(GuardedRunner, "run", lambda *_: said)
    assert GuardedRunner(repo, {}, 1, Stop(), print).reproduce("a") == "Executed"


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


def test_dvcs_advice_is_left_out(repo: Path) -> None:
    """It is the same after each stage, and a flow's user need not follow it."""
    said = toy.dvc(repo, "repro", "download").splitlines()
    assert {
        "To track the changes with git, run:",
        "Use `dvc push` to send your updates to remote storage.",
    } < {*said}
    lines = play(f"print({chr(10).join(said)!r})")
    assert lines == [line for line in said if line.startswith(("Running", ">", "Generating", "Updating"))]


def test_it_is_stopped_at_its_deadline() -> None:
    """A download that hangs must not hang the run, nor may the full pipe of one that floods its log."""
    start = time.monotonic()
    with pytest.raises(StageEnded, match=r"(?s)was ended at its deadline, 0\.000\d* h\..*flood"):
        play("while True: print('flood' * 1000)", seconds=0.8)
    assert time.monotonic() - start < 20


def test_a_stage_does_not_see_prefects_password(monkeypatch: pytest.MonkeyPatch) -> None:
    """It does not use the server, and what it prints is kept in logs."""
    monkeypatch.setenv("PREFECT_API_AUTH_STRING", "admin:pw")
    assert not [name for name in environment(["1", "3"]) if name.startswith("PREFECT_")]


@pytest.mark.parametrize(
    ("leased", "visible"), [(["1", "3"], "1,3"), (["MIG-7"], "MIG-7"), ([], ""), (None, "0,1,2,3")]
)
def test_a_stage_sees_the_gpus_that_it_has_leased(
    leased: list[str] | None, visible: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It must not use those of others; None leaves the choice to the user's variable."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1,2,3")
    assert environment(leased)["CUDA_VISIBLE_DEVICES"] == visible


def test_a_stage_runs_with_the_python_of_the_flow(monkeypatch: pytest.MonkeyPatch) -> None:
    """`python` in a command of dvc.yaml would otherwise be another one, without our packages."""
    monkeypatch.setenv("PATH", "/usr/bin")
    assert environment(None)["PATH"].split(os.pathsep)[0] == str(Path(sys.executable).parent)
