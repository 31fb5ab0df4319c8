"""Startup overhead: wall and processor seconds of whole commands.

    python -m benchmarks.overhead --model data/models/1

runs these in turns: Python alone; importing torch, convs2s, and the modules for translation; `convs2s
translate` with one sentence, given a --model; `dvc repro` and `dvc status` in this repository, if its stages
are up to date, so that there is nothing to do. The table has medians over rounds, with minimum and maximum.
"""

import argparse
import os
import resource
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.machine import machine, print_table, spread, write_report

IMPORTS = {
    "Python alone": "pass",
    "import torch": "import torch",
    "import convs2s": "import convs2s",
    "import convs2s.package.translator": "import convs2s.package.translator",
}
COLUMNS = ("command", "seconds", "lowest", "highest", "processor seconds", "lowest", "highest")


@dataclass(frozen=True)
class Command:
    """A command and its input."""

    words: Sequence[str]
    text: str = ""


@dataclass(frozen=True)
class Cost:
    """Wall and processor seconds of a command, including its children."""

    clock: float
    processor: float


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print and write."""
    options = parse(arguments)
    commands = {name: Command([sys.executable, "-c", code]) for name, code in IMPORTS.items()}
    if options.model is not None:
        commands["translate one sentence"] = one_sentence(options.model, options.sentence)
    if options.dvc:
        commands |= up_to_date()
    results = [result(name, costs) for name, costs in measure(commands, options.rounds).items()]
    print_table(COLUMNS, map(cells, results))
    if options.json:
        about = {"machine": machine(["numba", "dvc", "sacremoses"])}
        write_report(options.json, about, results)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.overhead", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--model", type=Path, help="model folder")
    parser.add_argument("--sentence", default="A man in a blue shirt is standing on a ladder.")
    parser.add_argument("--no-dvc", dest="dvc", action="store_false", help="leave out DVC's commands")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    return parser.parse_args(arguments)


def one_sentence(model: Path, sentence: str) -> Command:
    """Return the command that loads the model and translates a sentence on the CPU."""
    words = [sys.executable, "-m", "convs2s.cli", "translate", "--model", str(model), "--device", "cpu"]
    return Command(words, sentence + "\n")


def up_to_date() -> dict[str, Command]:
    """Return DVC's commands; none if stages would run."""
    dvc = [sys.executable, "-m", "dvc"]
    status = subprocess.run([*dvc, "status", "--quiet"], check=False)
    if status.returncode != 0:
        print("Stages are not up to date, so `dvc repro` would run some: left out.", file=sys.stderr)
        return {}
    return {"dvc status": Command([*dvc, "status"]), "dvc repro, nothing to do": Command([*dvc, "repro"])}


def measure(commands: Mapping[str, Command], rounds: int) -> dict[str, list[Cost]]:
    """Run commands in turns, after a warm-up; return the costs of each by round."""
    for command in commands.values():
        cost(command)
    costs: dict[str, list[Cost]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            costs[name].append(cost(command))
    return costs


def cost(command: Command) -> Cost:
    """Run a command and wait for it; return its cost.

    Raises:
        RuntimeError: if it fails, with the end of its output.
    """
    begin, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {**os.environ, "DVC_NO_ANALYTICS": "1"}
    ended = subprocess.run(
        command.words, input=command.text, capture_output=True, text=True, check=False, env=environment
    )
    seconds, after = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    if ended.returncode != 0:
        raise RuntimeError(
            f"{' '.join(command.words)} exited with status {ended.returncode}; wanted 0. Its output:\n"
            f"{ended.stderr[-500:]}"
        )
    return Cost(seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def result(name: str, costs: Sequence[Cost]) -> dict[str, Any]:
    """Return the spread of a command's costs."""
    return {
        "command": name,
        "seconds": asdict(spread([cost.clock for cost in costs])),
        "processor_seconds": asdict(spread([cost.processor for cost in costs])),
    }


def cells(one: Mapping[str, Any]) -> list[object]:
    """Return a row of the table."""
    return [one["command"], *one["seconds"].values(), *one["processor_seconds"].values()]


if __name__ == "__main__":
    main()
