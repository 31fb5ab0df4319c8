"""Kill runs of the DAG at random times: `python -m tests.faults 1000` for 1000 kills; --edits edits instead.

Each round starts from scratch and ends when `dvc repro` has succeeded; its outputs must then equal those of
an undisturbed run.
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
from collections.abc import Mapping
from pathlib import Path

import psutil

from pipelines.repair import repair
from tests.faults import edits, forked, repository
from tests.faults.results import differences, outputs

Kills = collections.Counter[str]  # by target
TARGETS = ("group", "dvc", "stage")


def kill(process: forked.Process, target: str) -> None:
    """Kill DVC, its stage, or both; nothing if it has just ended."""
    with contextlib.suppress(ProcessLookupError, psutil.NoSuchProcess, IndexError):
        if target == "group":
            os.killpg(process.pid, signal.SIGKILL)
        else:
            dvc = psutil.Process(process.pid)
            (dvc if target == "dvc" else dvc.children()[0]).kill()


def play(
    folder: Path, expected: Mapping[str, str], dice: random.Random, patience: float
) -> tuple[Kills, list[str]]:
    """Run `make repro` from scratch, killing it at random times, until a run ends by itself.

    Returns:
        The kills by target, and what differs from an undisturbed run.
    """
    shutil.rmtree(folder, ignore_errors=True)
    repository.make(folder)
    kills = Kills()
    while True:
        repair(folder)
        process = forked.start(folder)
        target = dice.choice(TARGETS)
        process.join(dice.uniform(0, patience))
        kills[target] += process.is_alive()
        kill(process, target)
        patience *= 1.02  # otherwise a round might not end on a machine that has become much busier
        if process.wait() == 0:
            return kills, [*map(str, forked.left_running(folder)), *differences(folder, expected)]


def main() -> int:
    """Play rounds until there were enough kills or edits, or one differs; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("number", type=int, help="of kills or edits")
    parser.add_argument("--edits", action="store_true", help="edit instead, as tests/faults/edits.py says")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    dice = random.Random(arguments.seed)
    total = Kills()
    faults = list[str]()
    with tempfile.TemporaryDirectory() as temporary:
        base = repository.make_base(Path(temporary))
        begin = time.monotonic()
        expected = outputs(base)
        repository.repro(base)
        patience = 4 * (time.monotonic() - begin)  # a run with nothing to do takes a quarter of it
        disturb = edits.play if arguments.edits else play
        while total.total() < arguments.number and not faults:
            disturbances, faults = disturb(base.with_name("round"), expected, dice, patience)
            total += disturbances
            print(f"{total.total()}: {dict(total)}: {faults or 'equal'}", flush=True)
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
