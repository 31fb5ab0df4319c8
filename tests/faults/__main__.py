"""Kill runs of the DAG at random times: `python -m tests.faults 1000` for 1000 kills, or `100 --flow`.

Each round starts from scratch and ends when `dvc repro` has succeeded; its outputs must then equal those of
an undisturbed run.
"""

import argparse
import contextlib
import functools
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import psutil

from pipelines.repair import repair
from tests.faults import flow_kills, forked, repository
from tests.faults.repository import Kills
from tests.faults.results import differences, outputs

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
        process, target = forked.start(folder), dice.choice(TARGETS)
        process.join(dice.uniform(0, patience))
        kills[target] += process.is_alive()
        kill(process, target)
        patience *= 1.02  # otherwise a round might not end on a machine that has become much busier
        if process.wait() == 0:
            return kills, [*map(str, forked.left_running(folder)), *differences(folder, expected)]


def play_rounds(count: int, play: Callable[[], tuple[Kills, list[str]]]) -> int:
    """Play rounds until there were `count` kills, but not after one that differs; return the exit status."""
    total, faults = Kills(), list[str]()
    while total.total() < count and not faults:
        kills, faults = play()
        total += kills
        print(f"{total.total()} kills: {dict(total)}: {faults or 'equal'}", flush=True)
    return int(bool(faults))


def main() -> int:
    """Print a line for each round and the totals; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("kills", type=int)
    parser.add_argument("--flow", action="store_true", help="kill `make flow`, with its server and worker")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    dice = random.Random(arguments.seed)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        if arguments.flow:
            with flow_kills.start_clone(folder) as (clone, expected, patience):
                play_round = functools.partial(flow_kills.play, clone, expected, dice, patience)
                return play_rounds(arguments.kills, play_round)
        base = repository.make_base(folder)
        begin, expected = time.monotonic(), outputs(base)
        repository.repro(base)
        patience = 4 * (time.monotonic() - begin)  # a run with nothing to do takes a quarter of it
        play_round = functools.partial(play, folder / "round", expected, dice, patience)
        return play_rounds(arguments.kills, play_round)


if __name__ == "__main__":
    sys.exit(main())
