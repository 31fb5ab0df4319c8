"""Real trainings of two seeds move between two remote workers that die, by a folder that all machines see."""

import contextlib
import json
import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from ruamel.yaml import YAML

from tests.faults.repository import toy_params
from tests.faults.results import outputs
from tests.flows import toy
from tests.flows.server import Server, end, processes, soon
from tests.train.tiny import ROOT

pytestmark = [pytest.mark.flows, pytest.mark.slow]
TRAININGS = ["train@1", "train@2"]


@pytest.fixture
def clones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The real DAG with a toy corpus, whose encoded text is made; empty clones for two workers."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # results depend on it
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    home, shared = tmp_path / "home", tmp_path / "checkpoints"
    shared.mkdir()
    for name in ("convs2s", "pipelines", "deploy"):
        shutil.copytree(ROOT / name, home / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("dvc.yaml", ".dvcignore", ".gitignore", "prefect.yaml"):
        shutil.copy(ROOT / name, home)
    content = toy_params(home).model_dump(mode="json")
    content["train"] |= {
        "seeds": [1, 2], "checkpoints": str(shared), "checkpoint_updates": 5,
        "max_epochs": 200, "anneal_factor": 0.99, "min_learning_rate": 1e-9,
    }  # fmt: skip
    with (home / "params.yaml").open("w", encoding="utf-8") as stream:
        YAML(typ="safe").dump(content, stream)
    toy.run(home, "git", "init", "--quiet", "--initial-branch", "main")
    toy.dvc(home, "init", "--quiet")
    toy.dvc(home, "remote", "add", "--default", "folder", str(tmp_path / "remote"))
    toy.commit(home)
    toy.run(tmp_path, "git", "clone", "--quiet", "--bare", str(home), "shared.git")
    toy.run(home, "git", "remote", "add", "origin", str(tmp_path / "shared.git"))
    for name in ("one", "two"):
        toy.run(tmp_path, "git", "clone", "--quiet", "shared.git", name)
    toy.run(home, sys.executable, "-m", "dvc", "repro", "encode", "candidates")
    return [home, tmp_path / "one", tmp_path / "two"]


def test_trainings_that_move_three_times_end_as_undisturbed_ones(
    server: Server, clones: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three times both machines die at a random moment, and what they had on disk is lost.

    A death is no retry, and nothing is left at the place.
    """
    home, *machines = clones
    calm = Path(shutil.copytree(home, home.with_name("calm"), symlinks=True))
    toy.run(calm, sys.executable, "-m", "dvc", "repro", *TRAININGS)
    server.deploy(home)
    monkeypatch.setitem(server.env, "PATH", toy.with_gpus(home.parent / "bin", 1))
    monkeypatch.setitem(server.env, "OMP_NUM_THREADS", "1")
    dice, reached = random.Random(), dict[str, int]()
    workers = [server.worker(machine, "remote") for machine in machines]
    try:
        flow = server.start_flow(home, remote="gpu", targets=TRAININGS)
        for _ in range(3):
            assert go_on(home.parent / "checkpoints", reached), server.log("worker")
            time.sleep(dice.uniform(0, 3))
            for machine, worker in zip(machines, workers, strict=True):
                crash(machine, worker)
            reached = newest(home.parent / "checkpoints")
            workers = [server.worker(machine, "remote") for machine in machines]
        flow.process.wait(300)
    finally:
        for worker in workers:
            end(worker)
    assert server.flow_run(flow.run)["state_type"] == "COMPLETED", server.flow_run(flow.run)["state"]
    assert outputs(home) == outputs(calm)
    assert newest(home.parent / "checkpoints") == {}
    sessions = [path for machine in machines for path in machine.glob("data/checkpoints/*/costs/*.json")]
    for first in ([session["first"] for session in json.loads(path.read_text())] for path in sessions):
        assert len(first) == 4 and first == sorted({*first}), first
    assert len(sessions) == 2


def newest(place: Path) -> dict[str, int]:
    """Return the number of updates of each training's newest checkpoint."""
    found: dict[str, int] = {}
    for path in place.glob("*/checkpoint-*.safetensors"):
        found[path.parent.name] = max(found.get(path.parent.name, 0), int(path.stem.split("-")[1]))
    return found


def go_on(place: Path, reached: dict[str, int]) -> bool:
    """Wait until both trainings have saved more than they had when their machines died."""

    def both() -> bool:
        now = newest(place)
        return len(now) == 2 and all(updates > reached.get(name, 0) for name, updates in now.items())

    return soon(both, 200)


def crash(machine: Path, worker: "subprocess.Popen[bytes]") -> None:
    """Kill a worker with its training, and lose what the machine had on disk."""
    worker.kill()
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if Path(process.cwd()) == machine and "pipelines.stages" in process.cmdline():
                process.kill()
    worker.wait()
    assert soon(lambda: not processes(machine), 90), processes(machine)
    shutil.rmtree(machine / "data" / "checkpoints")
