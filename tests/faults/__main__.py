"""Kill runs of the DAG at random times, again and again: `python -m tests.faults 1000`.

Each round begins with nothing and ends when `dvc repro` has succeeded; its outputs must then be those of a
run that nobody disturbed. Counted are the kills.
"""

import argparse
import collections
import contextlib
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

import psutil

from tests.faults import forked, repository
from tests.faults.base import Base, make
from tests.faults.cases import differences

TARGETS = ("group", "dvc", "stage")


def kill(process: forked.Process, target: str) -> None:
    """Kill DVC, its stage or both; a stage that is not there is not killed."""
    with contextlib.suppress(ProcessLookupError, psutil.NoSuchProcess):
        if target == "group":
            os.killpg(process.pid, signal.SIGKILL)
        elif target == "dvc":
            os.kill(process.pid, signal.SIGKILL)
        else:
            for child in psutil.Process(process.pid).children():
                child.kill()


def end_round(
    base: Base, folder: Path, dice: random.Random, patience: float
) -> tuple[collections.Counter[str], list[str]]:
    """Run `make repro` in an empty repository, killing it at random times, until it ends by itself.

    Args:
        patience: seconds until the latest kill of a run.

    Returns:
        The kills by target, and what differs from an undisturbed run.
    """
    repository.make(folder)
    kills: collections.Counter[str] = collections.Counter()
    while True:
        said = forked.repair(folder)
        kills["repaired"] += len(said)
        process, target = forked.start(folder), dice.choice(TARGETS)
        deadline = time.monotonic() + dice.uniform(0, patience)
        while time.monotonic() < deadline and not process.ended():
            time.sleep(0.005)
        if not process.ended():
            kill(process, target)
            kills[target] += 1
        status = process.wait()
        if status == 0:
            return kills, differences(folder, base.outputs)
        if status > 0 and target != "stage":
            kills[f"status {status}"] += 1
        if kills["failed"] > 20:
            return kills, [f"it does not end: see {folder.with_suffix('.log')}"]


def main() -> int:
    """Print a line for each round and the sum; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("kills", type=int)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    dice, total, wrong = random.Random(arguments.seed), collections.Counter[str](), 0
    with tempfile.TemporaryDirectory() as temporary:
        base = make(Path(temporary))
        begin = time.monotonic()
        forked.repro(base.folder)
        patience = 4 * (time.monotonic() - begin)  # a run that has nothing to do takes a quarter of it
        number = 0
        while sum(total[target] for target in TARGETS) < arguments.kills:
            number += 1
            folder = Path(temporary) / f"round{number}"
            kills, faults = end_round(base, folder, dice, patience)
            total += kills
            wrong += bool(faults)
            print(f"round {number}: {dict(kills)} {faults or 'equal'}", flush=True)
            if not faults:
                shutil.rmtree(folder)
    print(
        f"{sum(total[target] for target in TARGETS)} kills in {number} rounds: {dict(total)}; {wrong} differ"
    )
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
