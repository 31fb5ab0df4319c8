"""Kill runs of the flow at random times: its server, worker, orchestrator, guards, DVC and stages.

Stages are simulated (`tests.flows.toy`); server, worker, flow and DVC are real. All rounds share a clone,
whose server and worker are restarted when they have been killed, as by `make flow`.
"""

import contextlib
import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil

from tests.faults.repository import Kills
from tests.faults.results import differences, outputs
from tests.flows import toy
from tests.flows.server import FINAL, Server, soon

# The text that identifies each program in a command line.
PROGRAMS = {"flow": "prefect.", "guard": "pipelines.flows.guard", "dvc": "-m dvc", "stage": "toy.py"}
TARGETS = ["server", "worker", "server and worker", *PROGRAMS, "all"]
ENDING = {"worker", "server and worker", "flow", "all"}
GRACE = 10.0  # seconds without any process after which a run is over, even if the server has not noticed
LIMIT = 600.0  # seconds after which a run counts as hung


@dataclass
class Clone:
    """A clone with its server and worker."""

    root: Path
    server: Server
    worker: subprocess.Popen[bytes] | None = None

    def up(self) -> None:
        """Start whatever is not running."""
        if self.server.process is None or self.server.process.poll() is not None:
            self.server.start()
        self.server.deploy(self.root)
        if self.worker is None or self.worker.poll() is not None:
            self.worker = self.server.worker(self.root, "pipelines")

    def clear(self) -> None:
        """Delete everything that has been computed."""
        for name in ("data", ".dvc/cache"):
            shutil.rmtree(self.root / name, ignore_errors=True)
        for name in ("dvc.lock", "notes.jsonl"):
            (self.root / name).unlink(missing_ok=True)

    def state(self, run: str) -> str:
        """Return the type of a run's state, or "" while the server is unreachable."""
        try:
            return str(self.server.flow_run(run)["state_type"])
        except httpx.HTTPError:
            return ""

    def programs(self) -> list[tuple[int, str]]:
        """Return the number and the command line of each process in the clone, except its worker.

        The flow's own process, which runs below the worker, has another folder.
        """
        assert self.worker is not None
        found, worker, below = [], self.worker.pid, list[psutil.Process]()
        with contextlib.suppress(psutil.Error):
            below = psutil.Process(worker).children(recursive=True)
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                inside = process in below or (process.pid != worker and Path(process.cwd()) == self.root)
                if inside and process.status() != psutil.STATUS_ZOMBIE:
                    found.append((process.pid, " ".join(process.cmdline())))
        return found

    def kill(self, target: str, dice: random.Random) -> bool:
        """Kill a target; return whether there was one."""
        server, worker = self.server.process, self.worker
        assert server and worker
        both = [server, worker]
        own = {"server": [server], "worker": [worker], "server and worker": both, "all": both}.get(target, [])
        others = [pid for pid, line in self.programs() if PROGRAMS.get(target, "") in line]
        if target != "all":
            others = dice.sample(others, min(len(others), target in PROGRAMS))
        for pid in (*(one.pid for one in own), *others):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for one in own:
            one.wait()
        return bool(own or others)

    def wait(self, run: str) -> str:
        """Wait for a run to end; return its state, `LOST` if no process is left to report it, or `HANGS`."""
        begin = seen = time.monotonic()
        while time.monotonic() - begin < LIMIT:
            self.up()  # a worker exits if the server is slow to answer at its start
            state = self.state(run)
            if self.programs() or state in {"SCHEDULED", ""}:
                seen = time.monotonic()
            elif state in FINAL:
                return state
            elif time.monotonic() - seen > GRACE:
                return "LOST"
            time.sleep(0.2)
        return "HANGS"


def play(
    clone: Clone, expected: dict[str, str], dice: random.Random, patience: float
) -> tuple[Kills, list[str]]:
    """Run the flow from scratch, killing at random times, until it completes.

    Returns:
        The kills by target, and what differs from an undisturbed run.
    """
    clone.clear()
    kills = Kills()
    while True:
        clone.up()
        run = clone.server.trigger(parallel=3)
        struck = strike(clone, run, dice, patience)
        kills += struck
        state = clone.wait(run)
        if state == "COMPLETED":
            soon(lambda: not clone.programs(), 10)
            left = [f"{line} is left" for _, line in clone.programs()]
            return kills, [*left, *differences(clone.root, expected)]
        if state == "HANGS" or not struck:
            return kills, [f"{state} after {dict(struck)}"]


def strike(clone: Clone, run: str, dice: random.Random, patience: float) -> Kills:
    """Kill one target after another during a run, until a kill that ends it; return the kills."""
    kills, pause = Kills(), dice.uniform(0, 0.7 * patience)
    while not soon(lambda: clone.state(run) in FINAL, pause):
        target, pause = dice.choice(TARGETS), dice.uniform(0, patience / 8)
        if clone.kill(target, dice):
            kills[target] += 1
            clone.up()
        if kills.keys() & ENDING:
            break
    return kills


@contextlib.contextmanager
def start_clone(folder: Path) -> Iterator[tuple[Clone, dict[str, str], float]]:
    """Make a clone and run its flow once; yield it, its outputs, and how many seconds the run took."""
    clone = Clone(toy.make(folder / "clone"), Server(folder / "server"))
    toy.behave(clone.root, train_1={"seconds": 1}, train_2={"seconds": 2})
    try:
        clone.up()
        begin = time.monotonic()
        first = clone.wait(clone.server.trigger(parallel=3))
        assert first == "COMPLETED", first
        yield clone, outputs(clone.root), time.monotonic() - begin
    finally:
        clone.server.stop()
