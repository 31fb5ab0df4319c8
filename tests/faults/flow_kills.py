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
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import psutil

from tests.faults.repository import Kills
from tests.faults.results import differences, outputs
from tests.flows import toy
from tests.flows.server import FINAL, Server, end, soon

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
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def up(self) -> None:
        """Start whatever is not running."""
        if self.server.process is None or self.server.process.poll() is not None:
            self.server.start()
        self.server.deploy(self.root)
        if not self.workers or self.workers[-1].poll() is not None:
            self.workers.append(self.server.worker(self.root, "gpu"))

    def down(self) -> None:
        """Stop everything."""
        for worker in self.workers:
            end(worker.pid)
            worker.wait()
        self.server.stop()

    def clear(self) -> None:
        """Delete everything that has been computed."""
        for name in ("data", ".dvc/cache"):
            shutil.rmtree(self.root / name, ignore_errors=True)
        for name in ("dvc.lock", "notes.jsonl"):
            (self.root / name).unlink(missing_ok=True)

    def trigger(self) -> str:
        """Start a run, as `make flow` does; return its id."""
        self.server.csrf.clear()  # the token expires
        return self.server.trigger("reproduce/reproduce", parallel=3)

    def state(self, run: str) -> str:
        """Return the type of a run's state, or "" while the server is unreachable."""
        try:
            self.server.csrf.clear()
            return str(self.server.flow_run(run)["state_type"])
        except httpx.HTTPError:
            return ""

    def programs(self) -> list[tuple[int, str]]:
        """Return the number and the command line of each process in the clone, except its worker.

        The flow's own process, which runs below the worker, has another folder.
        """
        found, worker, below = [], self.workers[-1].pid, list[psutil.Process]()
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
        assert self.server.process is not None
        server, worker = self.server.process, self.workers[-1]
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
    clone: Clone, dice: random.Random, patience: float, expected: dict[str, str]
) -> tuple[Kills, list[str]]:
    """Run the flow from scratch, killing at random times, until it completes.

    Returns:
        The kills by target, and what differs from an undisturbed run.
    """
    clone.clear()
    kills = Kills()
    while True:
        clone.up()
        run = clone.trigger()
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


def run(count: int, folder: Path, dice: random.Random, tell: Callable[[str], None]) -> tuple[Kills, int, int]:
    """Make `count` kills; return the kills by target, the rounds, and how many of them differ."""
    clone = Clone(toy.make(folder / "clone"), Server(folder / "server"))
    total, number, wrong = Kills(), 0, 0
    toy.behave(clone.root, train_1={"seconds": 1}, train_2={"seconds": 2})
    try:
        clone.up()
        begin = time.monotonic()
        first = clone.wait(clone.trigger())
        assert first == "COMPLETED", first
        patience, expected = time.monotonic() - begin, outputs(clone.root)
        tell(f"an undisturbed run: {patience:.0f} s, {len(expected)} outputs and records")
        while total.total() < count:
            number += 1
            begin = time.monotonic()
            kills, faults = play(clone, dice, patience, expected)
            if not kills:  # the run was over before the first kill: the machine has become faster
                patience = min(patience, time.monotonic() - begin)
            total += kills
            wrong += bool(faults)
            tell(f"round {number}: {dict(kills)} {faults or 'equal'}")
    finally:
        clone.down()
    return total, number, wrong
