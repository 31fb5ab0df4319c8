"""Startup overhead: wall and processor seconds of whole commands.

    python -m benchmarks.overhead --model data/models/1

runs these in turns: Python alone; importing torch, convs2s, and the modules for translation; `convs2s
translate` with one sentence, given a --model; `dvc repro` and `dvc status` in this repository, whose
stages must be up to date. The table has medians over rounds, with minimum and maximum.
"""

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.machine import children_cpu_seconds, machine, make_parser, print_table, spread, write_report

IMPORTS = {
    "Python alone": "pass",
    "import torch": "import torch",
    "import convs2s": "import convs2s",
    "import convs2s.package.translator": "import convs2s.package.translator",
}
COLUMNS = ("command", "seconds", "lowest", "highest", "processor seconds", "lowest", "highest")
SENTENCE = "A man in a blue shirt is standing on a ladder.\n"


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print and write."""
    parser = make_parser(__doc__)
    parser.add_argument("--model", type=Path, help="model folder")
    parser.add_argument("--no-dvc", dest="dvc", action="store_false", help="leave out DVC's commands")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args(arguments)
    commands = {name: [sys.executable, "-c", code] for name, code in IMPORTS.items()}
    if options.model is not None:
        translate = ["-m", "convs2s.cli", "translate", "--model", str(options.model), "--device", "cpu"]
        commands["translate one sentence"] = [sys.executable, *translate]
    if options.dvc:
        dvc = [sys.executable, "-m", "dvc"]
        commands |= {"dvc status": [*dvc, "status"], "dvc repro, up to date": [*dvc, "repro"]}
    costs: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
    for _ in range(options.rounds + 1):
        for name, command in commands.items():
            costs[name].append(cost(command))
    results = []
    rows = []
    for name, (_, *rounds) in costs.items():  # the first round was the warm-up
        seconds, processor = (spread(values) for values in zip(*rounds, strict=True))
        results.append({"command": name, "seconds": seconds, "processor_seconds": processor})
        rows.append([name, *seconds.values(), *processor.values()])
    print_table(COLUMNS, rows)
    write_report(options.json, {"machine": machine(["numba", "dvc", "sacremoses"])}, results)


def cost(command: Sequence[str]) -> tuple[float, float]:
    """Run a command on SENTENCE; return wall and processor seconds, including its children.

    Raises:
        subprocess.CalledProcessError: if it fails.
    """
    begin = time.perf_counter()
    processor_before = children_cpu_seconds()
    environment = {**os.environ, "DVC_NO_ANALYTICS": "1"}
    subprocess.run(
        command, input=SENTENCE, stdout=subprocess.DEVNULL, encoding="utf-8", check=True, env=environment
    )
    return time.perf_counter() - begin, children_cpu_seconds() - processor_before


if __name__ == "__main__":
    main()
