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
GRACE = 10.0  # seconds without any process after which a run is over, even if the server has not noticed


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

    def programs(self) -> list[tuple[int, str]]:
        """Return the number and the command line of each process in the clone or below its worker."""
        assert self.worker is not None
        below = list[psutil.Process]()
        with contextlib.suppress(psutil.Error):
            below = psutil.Process(self.worker.pid).children(recursive=True)
        processes = [p for p in psutil.process_iter(["cwd", "cmdline", "status"]) if p.pid != self.worker.pid]
        belonging = [p for p in processes if p in below or p.info["cwd"] == str(self.root)]
        return [(p.pid, " ".join(p.info["cmdline"] or [])) for p in belonging if p.info["status"] != "zombie"]

    def kill(self, target: str, dice: random.Random) -> bool:
        """Kill a target; return whether there was one."""
        assert self.server.process and self.worker
        services = {"server": self.server.process, "worker": self.worker}
        killed = [service for name, service in services.items() if name in target or target == "all"]
        pids = [pid for pid, line in self.programs() if PROGRAMS.get(target, "") in line]
        if target != "all":
            pids = dice.sample(pids, min(len(pids), target in PROGRAMS))
        for pid in (*(service.pid for service in killed), *pids):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for service in killed:
            service.wait()
        return bool(killed or pids)

    def wait(self, run: str) -> str:
        """Wait for a run to end; return its state, or `LOST` if no process is left to report it."""
        seen = time.monotonic()
        while time.monotonic() - seen < GRACE:
            self.up()  # a worker exits if the server is slow to answer at its start
            state = ""
            with contextlib.suppress(httpx.HTTPError):  # while the server is unreachable
                state = str(self.server.flow_run(run)["state_type"])
            if self.programs() or state in {"SCHEDULED", ""}:
                seen = time.monotonic()
            elif state in FINAL:
                return state
            time.sleep(0.2)
        return "LOST"


def play(
    clone: Clone, expected: dict[str, str], dice: random.Random, patience: float
) -> tuple[Kills, list[str]]:
    """Run the flow from scratch, killing something at a random time, until it completes; return as `play`."""
    for name in ("data", ".dvc/cache"):
        shutil.rmtree(clone.root / name, ignore_errors=True)
    for name in ("dvc.lock", "notes.jsonl"):
        (clone.root / name).unlink(missing_ok=True)
    kills = Kills()
    while True:
        clone.up()
        run, target = clone.server.trigger(parallel=3), dice.choice(TARGETS)
        time.sleep(dice.uniform(0, patience))
        killed = clone.kill(target, dice)
        kills[target] += killed
        state = clone.wait(run)
        if state == "COMPLETED":
            soon(lambda: not clone.programs(), 10)
            left = [f"{line} is left" for _, line in clone.programs()]
            return kills, [*left, *differences(clone.root, expected)]
        if not killed:
            return kills, [f"{state}, although nothing was killed"]


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
