"""Processes are started with their rank and share of the cores; the caller's environment is restored."""

import os
import signal
import sys
from pathlib import Path

import pytest
from torch.distributed.elastic.rendezvous import dynamic_rendezvous

from convs2s.train import launch as module
from convs2s.train.launch import launch

PLACE = """
import json, os, pathlib, sys
folder, failing = pathlib.Path(sys.argv[1]), sys.argv[2]
names = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "OMP_NUM_THREADS")
assert os.environ["CONVS2S_LAUNCHER"] == str(os.getppid())
assert {"MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_USE_AGENT_STORE"} <= os.environ.keys()  # to meet
(folder / os.environ["RANK"]).write_text(" ".join(os.environ[name] for name in names))
if os.environ["RANK"] == failing:
    sys.exit(3)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a module `place`, which records its rank and environment."""
    (tmp_path / "place.py").write_text(PLACE)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(6)))
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    # For its events, torchrun looks through all modules, of which a process that runs tests has thousands.
    monkeypatch.setattr(dynamic_rendezvous, "get_method_name", lambda depth=2: "unknown")
    (tmp_path / "places").mkdir()
    return tmp_path / "places"


@pytest.mark.parametrize(("chosen", "threads"), [(None, 2), ("5", 5)])
def test_each_process_knows_its_place_and_the_caller_stays_as_it_was(
    folder: Path, chosen: str | None, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of three gets two threads of six cores unless the user decides; Ctrl-C works afterwards."""
    if chosen:
        monkeypatch.setenv("OMP_NUM_THREADS", chosen)
    environment, handler = dict(os.environ), signal.getsignal(signal.SIGINT)
    launch("place", [str(folder), "none"], workers=3, name="three")
    found = {path.name: path.read_text() for path in folder.iterdir()}
    assert found == {str(rank): f"{rank} {rank} 3 {threads}" for rank in range(3)}
    assert dict(os.environ) == environment
    assert signal.getsignal(signal.SIGINT) is handler


def test_a_failing_process_is_named(folder: Path) -> None:
    """The message has its rank and exit status."""
    handler = signal.getsignal(signal.SIGTERM)
    with pytest.raises(
        ChildProcessError, match=r"Worker 1 of 2 failed with status 3\. Its own message is above"
    ):
        launch("place", [str(folder), "1"], workers=2, name="failing")
    assert signal.getsignal(signal.SIGTERM) is handler


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGUSR1])
def test_an_interrupted_launch_ends(number: signal.Signals, monkeypatch: pytest.MonkeyPatch) -> None:
    """A signal raises the usual KeyboardInterrupt, whatever torchrun's agent does with it."""

    def interrupted(*_: object) -> None:
        raise module.SignalException("interrupted", sigval=number)

    monkeypatch.setattr(module, "elastic_launch", lambda *_: interrupted)
    with pytest.raises(KeyboardInterrupt):
        launch(sys.executable, [], workers=2, name="interrupted")
