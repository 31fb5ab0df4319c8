"""Two nodes in two folders of this machine: whatever is killed, all ends as if it had not been."""

import contextlib
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from convs2s.config.params import Params
from convs2s.train.running import run
from tests.train.forks import launch_forks
from tests.train.test_run import in_process, prepare
from tests.train.test_worker_faults import check_equal
from tests.train.tiny import ROOT, tiny_params, write_tiny

TRAIN = """
from convs2s.config.load import load_params
from convs2s.base.messages import report_errors
from convs2s.train.running.run import train_model
from tests.train.tiny import PATHS
params = load_params()
with report_errors("train", "", ""):
    train_model(params.model, params.train, params.run, 1, *PATHS)
"""
TINY = dict[str, Any](batch_sentences=4, max_epochs=16, anneal_factor=0.9, checkpoint_updates=10)
Start = Callable[[Path], subprocess.Popen[bytes]]


def prepare_two(root: Path, **changes: Any) -> Params:
    """Write the inputs of nodes a and b, and params.yaml for a, where the stage runs."""
    launcher = f"{sys.executable} {ROOT}/tests/train/launcher.py {root}/a {root}/b --"
    settings = {"nodes": 2, "launcher": launcher, "rendezvous": "localhost"}
    for name in "ab":
        (root / name).mkdir()
        write_tiny(root / name)
    return tiny_params(root / "a", **TINY | settings | changes)


@pytest.fixture
def start() -> Iterator[Start]:
    """Return a function that starts a training as a stage does; its messages are in root/log."""
    started = []

    def begin(root: Path) -> subprocess.Popen[bytes]:
        environment = os.environ | {"PYTHONPATH": str(ROOT)}
        with (root / "log").open("a") as log:
            command = [sys.executable, "-c", TRAIN]
            started.append(subprocess.Popen(command, cwd=root / "a", env=environment, stderr=log))
        return started[-1]

    yield begin
    for training in started:
        training.kill()
        training.wait()


def pids(root: Path) -> list[int]:
    """Return the processes of the newest start: torchrun of node a, that of node b, and the launcher."""
    try:
        a, b = ([*map(int, (root / name / "pid").read_text().split())] for name in "ab")
    except FileNotFoundError:
        return []
    return [a[0], b[0], a[1]] if a[1:] == b[1:] != [] else []


def newest(root: Path) -> int:
    """Return the number of updates of the newest checkpoint."""
    names = (path.stem.removeprefix("checkpoint-") for path in root.glob("a/work/*/checkpoint-*"))
    return max(map(int, names), default=0)


def soon(condition: Callable[[], bool]) -> None:
    """Wait for a condition."""
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def undisturbed(folder: Path, **changes: Any) -> Path:
    """Return the folder of an undisturbed training with two workers on one machine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "launch", launch_forks)
        in_process(folder, prepare(folder, workers=2, **TINY | changes), patch)
    return folder


@pytest.mark.slow
def test_a_worker_is_killed(start: Start, tmp_path: Path) -> None:
    """torchrun starts all workers again from the last checkpoint, also where a node has no checkpoints.

    Node b has only the inputs, in its own folder, and nothing of the training is left there.
    """
    prepare_two(tmp_path, restarts=1, max_epochs=4)
    training = start(tmp_path)
    soon(lambda: newest(tmp_path) >= 20)
    (worker,) = psutil.Process(pids(tmp_path)[1]).children()
    worker.kill()
    assert training.wait(60) == 0
    assert (tmp_path / "log").read_text().count("Training continues from work/") == 1
    check_equal(tmp_path / "a", undisturbed(tmp_path / "whole", max_epochs=4))
    assert not [path for path in (tmp_path / "b" / "work").rglob("*") if path.is_file()]


@pytest.mark.slow
def test_ten_random_kills(start: Start, tmp_path: Path) -> None:
    """A worker, a node, both nodes, the launcher or the head is killed, each at any time.

    If the whole training ends, it is started again, as a user would; its outputs are the undisturbed ones.
    """
    seed = random.randrange(10**6)
    print("seed", seed)
    choose = random.Random(seed)
    prepare_two(tmp_path, max_epochs=24, restarts=1)
    training = start(tmp_path)
    for _ in range(10):
        wanted = newest(tmp_path) + choose.randrange(1, 4 * 19)  # at most four epochs
        soon(lambda: newest(tmp_path) >= wanted or training.poll() is not None)  # noqa: B023
        time.sleep(choose.uniform(0, 0.5))
        a, b, launcher = pids(tmp_path)
        workers = [
            child.pid for pid in (a, b) if psutil.pid_exists(pid) for child in psutil.Process(pid).children()
        ]
        for pid in choose.choice([workers[:1], workers[1:], [a], [b], [launcher], [a, b], [training.pid]]):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(1)
        if training.poll() is not None or (choose.random() < 0.3 and training.wait(120) is not None):
            training = start(tmp_path)
    if training.wait(300):
        assert start(tmp_path).wait(300) == 0, (tmp_path / "log").read_text()
    check_equal(tmp_path / "a", undisturbed(tmp_path / "whole", max_epochs=24))


@pytest.mark.slow
def test_a_node_with_other_files_is_named(start: Start, tmp_path: Path) -> None:
    """Other code would compute other gradients without an error. All end within a minute."""
    prepare_two(tmp_path)
    shutil.copytree(ROOT / "convs2s", tmp_path / "b" / "convs2s")
    (tmp_path / "b" / "convs2s" / "__init__.py").write_text("# edited")
    assert start(tmp_path).wait(60) == 2
    said = (tmp_path / "log").read_text()
    assert re.search(rf"found other versions on .* in {tmp_path}/b: code of convs2s\.", said), said


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGINT])
@pytest.mark.usefixtures("in_foreground")
def test_a_signal_saves_and_ends_all(number: signal.Signals, start: Start, tmp_path: Path) -> None:
    """Slurm sends one before a job's limit; the same command then completes the training."""
    prepare_two(tmp_path, checkpoint_updates=1000, max_epochs=40)
    training = start(tmp_path)
    soon(lambda: newest(tmp_path) >= 19 * 2)
    time.sleep(0.3)
    training.send_signal(number)
    assert training.wait(40) == (130 if number == signal.SIGINT else 128 + number)
    assert not any(map(psutil.pid_exists, pids(tmp_path)))
    assert start(tmp_path).wait(120) == 0
    check_equal(tmp_path / "a", undisturbed(tmp_path / "whole", max_epochs=40))
