"""Kill runs of the flow at random times: its server, worker, orchestrator, guards, DVC and stages.

Stages are simulated (`tests.flows.toy`); server, worker, flow and DVC are real. All rounds share a clone,
whose server and worker are restarted when they have been killed, as by `make flow`.
"""

import contextlib
import os
import random
import shutil
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import psutil

from tests.faults import repository
from tests.faults.base import Kills
from tests.faults.cases import differences
from tests.flows import toy
from tests.flows.server import FINAL, Server, end, gone, processes, soon

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

    def running(self) -> list[str]:
        """Return the command lines of processes in the clone or below its worker, without the worker."""
        lines = [line for line in processes(self.root) if "prefect worker start" not in line]
        with contextlib.suppress(psutil.Error):
            lines += [str(one.pid) for one in psutil.Process(self.workers[-1].pid).children(recursive=True)]
        return lines

    def kill(self, target: str, dice: random.Random) -> bool:
        """Kill a target; return whether there was one."""
        family = [*self.workers[-1:], *filter(None, [self.server.process])]
        wanted = {"server": family[1:], "worker": family[:1], "server and worker": family, "all": family}
        chosen = [psutil.Process(one.pid) for one in wanted.get(target, [])]
        if target == "all":
            chosen += [one for one, _ in self.programs("")]
        if target in PROGRAMS:
            found = [one for one, line in self.programs(PROGRAMS[target]) if "worker start" not in line]
            chosen = dice.sample(found, min(1, len(found)))
        for process in chosen:
            with contextlib.suppress(psutil.NoSuchProcess):
                os.kill(process.pid, 9)
        for one in family:
            if target in {"all", "server and worker"} or one in wanted.get(target, []):
                one.wait()
        return bool(chosen)

    def programs(self, part: str) -> list[tuple[psutil.Process, str]]:
        """Return the processes of the clone with a text in their command lines.

        The flow's own process does not run in the clone's folder: it is found below the worker.
        """
        found, below = [], list[psutil.Process]()
        with contextlib.suppress(psutil.Error):
            below = psutil.Process(self.workers[-1].pid).children(recursive=True)
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                line = " ".join(process.cmdline())
                if part in line and (process in below or Path(process.cwd()) == self.root):
                    found.append((process, line))
        return found

    def wait(self, run: str) -> str:
        """Wait for a run to end; return its state, `LOST` if no process is left to report it, or `HANGS`."""
        begin = seen = time.monotonic()
        while time.monotonic() - begin < LIMIT:
            self.up()  # a worker exits if the server is slow to answer at its start
            state = self.state(run)
            if self.running() or state in {"SCHEDULED", ""}:
                seen = time.monotonic()
            elif state in FINAL:
                return state
            elif time.monotonic() - seen > GRACE:
                return "LOST"
            time.sleep(0.2)
        return "HANGS"


def play(
    clone: Clone, dice: random.Random, patience: float, wanted: dict[str, str]
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
            return kills, [*left(clone), *differences(clone.root, wanted)]
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


def left(clone: Clone) -> list[str]:
    """Return what is still running in the clone after the run has ended."""
    try:
        gone(clone.root, lambda line: "prefect worker start" in line)
    except AssertionError as error:
        return [f"left: {error}"]
    return []


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
        patience, wanted = time.monotonic() - begin, repository.outputs(clone.root)
        tell(f"an undisturbed run: {patience:.0f} s, {len(wanted)} outputs and records")
        while total.total() < count:
            number += 1
            begin = time.monotonic()
            kills, faults = play(clone, dice, patience, wanted)
            if not kills:  # the run was over before the first kill: the machine has become faster
                patience = min(patience, time.monotonic() - begin)
            total += kills
            wrong += bool(faults)
            tell(f"round {number}: {dict(kills)} {faults or 'equal'}")
    finally:
        clone.down()
    return total, number, wrong
