"""Kill runs of the DAG at random times: `python -m tests.faults 1000` for 1000 kills, or `100 --flow`.

Each round starts from scratch and ends when `dvc repro` has succeeded; its outputs must then equal those of
an undisturbed run.
"""

import argparse
import contextlib
import functools
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import psutil

from pipelines.repair import repair
from tests.faults import flow_kills, forked, repository
from tests.faults.repository import Base, Kills
from tests.faults.results import differences

TARGETS = ("group", "dvc", "stage")


def kill(process: forked.Process, target: str) -> bool:
    """Kill DVC, its stage or both; return whether there was anything to kill."""
    with contextlib.suppress(ProcessLookupError, psutil.NoSuchProcess, IndexError):
        if target == "group":
            process.kill_group()
        elif target == "dvc":
            process.kill()
        else:
            psutil.Process(process.pid).children()[0].kill()
        return True
    return False


def play(base: Base, folder: Path, dice: random.Random, patience: float) -> tuple[Kills, list[str]]:
    """Run `make repro` in an empty repository, killing it at random times, until a run ends by itself.

    Args:
        patience: a run is killed within this many seconds.

    Returns:
        The kills by target, and what differs from an undisturbed run.
    """
    repository.make(folder)
    kills = Kills()
    while True:
        kills["repaired"] += len(repair(folder))
        process, target = forked.start(folder), dice.choice(TARGETS)
        process.join(dice.uniform(0, patience))
        killed = process.is_alive() and (kill(process, target) or kill(process, target := "group"))
        kills[target] += killed
        patience *= 1.02  # otherwise a round might not end on a machine that has become much busier
        status = process.wait()
        if status == 0:
            return kills, [*map(str, forked.left_running(folder)), *differences(folder, base.outputs)]
        if not killed:
            return kills, [f"a run that nobody killed ended with status {status}"]


def run(count: int, folder: Path, dice: random.Random, tell: Callable[[str], None]) -> tuple[Kills, int, int]:
    """Make `count` kills; return the kills by target, the rounds, and how many of them differ."""
    base = repository.make_base(folder)
    begin = time.monotonic()
    repository.repro(base.folder)
    patience = 4 * (time.monotonic() - begin)  # a run with nothing to do takes a quarter of it
    total, number, wrong = Kills(), 0, 0
    while sum(total[target] for target in TARGETS) < count:
        number += 1
        begin = time.monotonic()
        kills, faults = play(base, folder / f"round{number}", dice, patience)
        if not kills.total():  # the run was over before the first kill: the machine has become faster
            patience = min(patience, time.monotonic() - begin)
        total += kills
        wrong += bool(faults)
        tell(f"round {number}: {dict(kills)} {faults or 'equal'}")
        if not faults:
            shutil.rmtree(folder / f"round{number}")
    return total, number, wrong


def main() -> int:
    """Print a line for each round and the totals; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("kills", type=int)
    parser.add_argument("--flow", action="store_true", help="kill `make flow`, with its server and worker")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    play_all = flow_kills.run if arguments.flow else run
    with tempfile.TemporaryDirectory() as temporary:
        dice, tell = random.Random(arguments.seed), functools.partial(print, flush=True)
        total, rounds, wrong = play_all(arguments.kills, Path(temporary), dice, tell)
    count = total.total() - total["repaired"]
    print(f"{count} kills in {rounds} rounds: {dict(total)}; {wrong} rounds differ")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
