"""Two nodes in two folders of this machine: whatever is killed, all ends as if it had not been."""

import contextlib
import getpass
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from convs2s.config.params import Params
from convs2s.train import run
from tests.train.forks import launch_forks
from tests.train.slurm import slurm
from tests.train.test_run import in_process, prepare
from tests.train.test_worker_faults import check_equal
from tests.train.tiny import ROOT, tiny_params, write_tiny

TRAIN = """
from pathlib import Path
from convs2s.config.load import load_params
from convs2s.base.messages import report_errors
from convs2s.train.run import PATHS, train_model
params = load_params()
with report_errors("train", "", ""):
    train_model(params.model, params.train, params.run, 1, *map(Path, PATHS))
"""
TINY: dict[str, Any] = {
    "batch_sentences": 4,
    "max_epochs": 16,
    "anneal_factor": 0.9,
    "checkpoint_updates": 10,
}
Start = Callable[[Path], subprocess.Popen[bytes]]


def prepare_two(root: Path, **changes: Any) -> Params:
    """Write the inputs of nodes a and b, and params.yaml for a, where the stage runs."""
    launcher = f"{sys.executable} {ROOT}/tests/train/launcher.py {root}/a {root}/b --"
    settings = {"nodes": 2, "launcher": launcher, "rendezvous": "localhost", "restarts": 99}
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
    """Return the processes of the newest start: node a, node b and the launcher."""
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


def test_a_node_and_the_launcher_are_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
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
    run.train_model(params.model, params.train, params.run, 1, *map(Path, run.PATHS))
    killer.join()
    check_equal(tmp_path / "a", undisturbed(tmp_path / "whole"))
    said = capfd.readouterr().err
    assert said.count("All start again, from the last checkpoint") == 2
    assert said.count("Training continues from work/") == 2
    assert re.search(rf"in {tmp_path}/b: It was killed|before \S+ in {tmp_path}/b", said), said
    assert "run.launcher ended with status -9 before" in said
    assert not [path for path in (tmp_path / "b" / "work").rglob("*") if path.is_file()]


@pytest.mark.slow
def test_ten_random_kills(start: Start, tmp_path: Path) -> None:
    """Of a node, both, the launcher or the head; only for the head, somebody starts the training again."""
    seed = random.randrange(10**6)
    print("seed", seed)
    choose = random.Random(seed)
    prepare_two(tmp_path, max_epochs=80)
    training, before = start(tmp_path), list[int]()
    for _ in range(10):
        soon(lambda: pids(tmp_path) not in ([], before))  # noqa: B023
        before = pids(tmp_path)
        time.sleep(choose.uniform(0, 15))
        a, b, launcher = before
        killed = choose.choice([[a], [b], [launcher], [a, b], [training.pid]])
        for one in filter(psutil.pid_exists, killed):
            os.kill(one, signal.SIGKILL)
        if training.pid in killed:
            training.wait()
            training = start(tmp_path)
    assert training.wait(300) == 0, (tmp_path / "log").read_text()
    check_equal(tmp_path / "a", undisturbed(tmp_path / "whole", max_epochs=80))


def edit_code(node: Path) -> None:
    """Edit the node's own copy of the library."""
    shutil.copytree(ROOT / "convs2s", node / "convs2s")
    (node / "convs2s" / "__init__.py").write_text("# edited")


def edit_ids(node: Path) -> None:
    """Replace a word of the validation set."""
    path = node / "encoded" / "valid" / "source.ids.npy"
    ids = np.load(path)
    ids[0] = 3 if ids[0] > 3 else 4
    np.save(path, ids)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (edit_code, r"expected code of convs2s \w+, as on .*, found \w+ on"),
        (edit_ids, "expected the inputs of"),
    ],
)
def test_a_node_with_other_files_is_named(
    edit: Callable[[Path], None], message: str, start: Start, tmp_path: Path
) -> None:
    """All end within a minute."""
    prepare_two(tmp_path)
    edit(tmp_path / "b")
    assert start(tmp_path).wait(60) == 2
    said = (tmp_path / "log").read_text()
    assert re.search(rf"{message}.* in {tmp_path}/b", said), said


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGINT])
@pytest.mark.usefixtures("in_foreground")
def test_a_signal_saves_and_ends_all(number: signal.Signals, start: Start, tmp_path: Path) -> None:
    """The head's status is that of the signal; the same again goes on from an update that only it saved."""
    prepare_two(tmp_path, checkpoint_updates=1000, max_epochs=40)
    training = start(tmp_path)
    soon(lambda: newest(tmp_path) >= 19 * 2)
    time.sleep(0.3)
    training.send_signal(number)
    assert training.wait(40) == (
        130 if number == signal.SIGINT else 128 + number
    )  # without waiting for ENDING
    assert not any(map(psutil.pid_exists, pids(tmp_path)))
    assert newest(tmp_path) % 19
    assert start(tmp_path).wait(120) == 0
    check_equal(tmp_path / "a", undisturbed(tmp_path / "whole", max_epochs=40))


@pytest.mark.slow
def test_slurm_starts_two_nodes_and_ends_them(start: Start, tmp_path: Path) -> None:
    """A node is killed, and srun starts all again; Slurm sends a signal, as before the end of a job."""
    srun = "srun --nodes=2 --ntasks-per-node=1 --label --kill-on-bad-exit"
    srun += " sh -c 'cd ../$SLURMD_NODENAME && exec \"$@\"' sh"
    prepare_two(tmp_path, launcher=srun, max_epochs=40)
    with slurm(tmp_path / "slurm"):
        training = start(tmp_path)
        soon(lambda: newest(tmp_path) >= 100)
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if "convs2s.train.node" in process.cmdline() and process.cwd() == str(tmp_path / "b"):
                    process.kill()
        soon(lambda: newest(tmp_path) >= 300)
        subprocess.run(["scancel", "--signal=USR1", f"--user={getpass.getuser()}"], check=True)
        assert training.wait(60) == 130
        assert start(tmp_path).wait(120) == 0
    said = (tmp_path / "log").read_text()
    assert said.count("Training continues from work/") == 2
    check_equal(tmp_path / "a", undisturbed(tmp_path / "whole", max_epochs=40))
