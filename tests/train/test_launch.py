"""Processes are started with their rank and share of the cores; the caller's environment is restored."""

import os
import shutil
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from convs2s.train.running.launch import launch
from tests.train.tiny import ROOT, tiny_params

PLACE = """
import os, pathlib, signal, sys, time
folder, fault = pathlib.Path(sys.argv[1]), sys.argv[2]
names = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "OMP_NUM_THREADS")
assert os.environ["CONVS2S_LAUNCHER"] == str(os.getppid())
assert {"MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_USE_AGENT_STORE"} <= os.environ.keys()  # to meet
place = folder / f"{os.environ['RANK']}.{os.environ['TORCHELASTIC_RESTART_COUNT']}"
place.write_text(" ".join(os.environ[name] for name in names))
if fault == "fail" and os.environ["RANK"] == "1":
    while len([*folder.glob(f"*{place.suffix}")]) < 3:  # torchrun would end the others before they write
        time.sleep(0.02)
    sys.exit(3)
if fault == "wait":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(place.write_text("saved") and 143))
    time.sleep(60)
"""
Begin = Callable[..., None]


@pytest.fixture
def begin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Begin:
    """Launch a module `place`, which records its place in the folder `places`, on six cores."""
    (tmp_path / "place.py").write_text(PLACE)
    (tmp_path / "places").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(6)))
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)

    def call(fault: str, **settings: Any) -> None:
        params = tiny_params(tmp_path, **settings)
        launch("place", ["places", fault], params.train, params.run)

    return call


def list_places() -> dict[str, str]:
    return {path.name: path.read_text() for path in Path("places").iterdir()}


@pytest.mark.slow
def test_nodes_meet(begin: Begin, monkeypatch: pytest.MonkeyPatch) -> None:
    """The launcher starts torchrun on two nodes, each in its own folder, with the user's OMP_NUM_THREADS."""
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    for name in "ab":
        Path(name, "places").mkdir(parents=True)
        shutil.copy("place.py", name)
    launcher = f"{sys.executable} {ROOT}/tests/train/launcher.py a b --"
    begin("none", nodes=2, launcher=launcher, rendezvous="localhost")
    places = [path.read_text() for path in Path().glob("[ab]/places/*")]
    assert sorted(places) == ["0 0 2 5", "1 0 2 5"]


def test_a_failing_process_ends_all(begin: Begin, capfd: pytest.CaptureFixture[str]) -> None:
    """All restart together, as often as asked for; then one line names the worker that failed.

    Three workers on six cores have two threads each.
    """
    with pytest.raises(ChildProcessError, match="The workers ended with status 3; messages are above"):
        begin("fail", workers=3, restarts=1)
    assert "train: worker 1 failed with status 3." in capfd.readouterr().err
    assert list_places() == {f"{n}.{start}": f"{n} {n} 3 2" for n in range(3) for start in (0, 1)}


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGUSR1, marks=pytest.mark.slow)])
@pytest.mark.usefixtures("in_foreground")
def test_a_signal_lets_all_save(number: signal.Signals, begin: Begin) -> None:
    """The workers get SIGTERM in place of any signal, and save. The caller's handlers come back."""
    handler = signal.getsignal(number)

    def interrupt() -> None:
        while len(list_places()) < 2:
            threading.Event().wait(0.02)
        threading.Event().wait(0.3)
        os.kill(os.getpid(), number)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt if number == signal.SIGINT else SystemExit):
        begin("wait", workers=2)
    assert list_places() == {"0.0": "saved", "1.0": "saved"}
    assert signal.getsignal(number) is handler


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"launcher": "no-such-command -n 2"}, "No such file or directory: 'no-such-command'"),
        ({"launcher": "x", "rendezvous": "localhost:x"}, "run.rendezvous: cannot listen on localhost:x"),
        ({"launcher": "x", "rendezvous": "192.0.2.1:9"}, "run.rendezvous: cannot listen on 192.0.2.1:9"),
    ],
)
def test_a_launcher_that_cannot_work_is_refused(
    settings: dict[str, Any], message: str, begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command may not exist, or the address may be no address of this machine."""
    monkeypatch.setattr("convs2s.train.running.launch.MEETING", 0.1)
    with pytest.raises(OSError, match=message):
        begin("none", **settings)
