"""Two nodes in two folders of this machine: whatever is killed, all ends as if it had not been."""

import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from convs2s.config.params import Params
from convs2s.train import run
from tests.train.forks import launch_forks
from tests.train.test_run import in_process, prepare
from tests.train.test_worker_faults import check_equal
from tests.train.tiny import ROOT, tiny_params, write_tiny

TRAIN = """
from pathlib import Path
from convs2s.config.load import load_params
from convs2s.messages import report_errors
from convs2s.train.run import PATHS, train_model
params = load_params()
with report_errors("train", "", ""):
    train_model(params.model, params.train, 1, *map(Path, PATHS))
"""
TINY: dict[str, Any] = {
    "batch_sentences": 4,
    "max_epochs": 16,
    "anneal_factor": 0.9,
    "checkpoint_updates": 10,
}


def prepare_two(root: Path, **changes: Any) -> Params:
    """Write the inputs of nodes a and b, and params.yaml for a, where the stage runs."""
    launcher = f"{sys.executable} {ROOT}/tests/train/launcher.py {root}/a {root}/b --"
    settings = {"nodes": 2, "launcher": launcher, "rendezvous": "localhost", "restarts": 99}
    for name in "ab":
        (root / name).mkdir()
        write_tiny(root / name)
    return tiny_params(root / "a", **TINY | settings | changes)


def start(root: Path) -> subprocess.Popen[str]:
    """Start a training as a stage does."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        [sys.executable, "-c", TRAIN], cwd=root / "a", env=environment, stderr=subprocess.PIPE, text=True
    )


def pids(root: Path) -> list[int]:
    """Return the processes of the newest start: node a, node b and the launcher."""
    try:
        a, b = ([*map(int, (root / name / "pid").read_text().split())] for name in "ab")
    except FileNotFoundError:
        return []
    return [a[0], b[0], a[1]] if a[1] == b[1] else []


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


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of an undisturbed training with two workers on one machine."""
    folder = tmp_path_factory.mktemp("whole") / "a"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "launch", launch_forks)
        in_process(folder, prepare(folder, workers=2, **TINY), patch)
    return folder


def test_a_node_and_the_launcher_are_killed(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """All start again from the last checkpoint. Node b has nothing but the inputs, in its own folder."""
    params = prepare_two(tmp_path)
    monkeypatch.chdir(tmp_path / "a")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))

    def kill() -> None:
        for updates, number in ((40, 1), (120, 2)):
            soon(lambda updates=updates: newest(tmp_path) >= updates)  # type: ignore[misc]
            os.kill(pids(tmp_path)[number], signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    run.train_model(params.model, params.train, 1, *map(Path, run.PATHS))
    killer.join()
    check_equal(tmp_path / "a", whole)
    said = capfd.readouterr().err
    assert said.count("All start again, from the last checkpoint") == 2
    assert said.count("Training continues from work/") == 2
    assert re.search(rf"in {tmp_path}/b: It was killed|before \S+ in {tmp_path}/b", said)
    assert "train.launcher ended with status -9 before" in said
    assert not (tmp_path / "b" / "work").exists()


@pytest.mark.slow
@pytest.mark.parametrize("seed", [random.randrange(10**6)])
def test_ten_random_kills(seed: int, whole: Path, tmp_path: Path) -> None:
    """Of a node, both, the launcher or the head; only for the latter, somebody starts the training again."""
    choose = random.Random(seed)
    prepare_two(tmp_path, checkpoint_updates=3)
    training, before = start(tmp_path), list[int]()
    for _ in range(10):
        soon(lambda: pids(tmp_path) not in ([], before) or training.poll() is not None)  # noqa: B023
        before = pids(tmp_path)
        time.sleep(choose.uniform(0, 20))
        a, b, launcher = before
        for one in choose.choice([[a], [b], [launcher], [a, b], [training.pid]]):
            if psutil.pid_exists(one):
                os.kill(one, signal.SIGKILL)
        if training.poll() is not None or not psutil.pid_exists(training.pid):
            training = start(tmp_path)
    _, said = training.communicate(timeout=300)
    assert training.returncode == 0, said
    check_equal(tmp_path / "a", whole)
