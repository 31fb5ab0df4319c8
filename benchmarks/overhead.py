"""Startup overhead: wall and processor seconds of whole commands.

    python -m benchmarks.overhead --model data/models/1

runs these in turns: Python alone; importing torch, convs2s, and the modules for translation; `convs2s
translate` with one sentence, given a --model; `dvc repro` and `dvc status` in this repository, whose
stages must be up to date. The table has medians over rounds, with minimum and maximum.
"""

import argparse
import os
import sys
from functools import partial

from benchmarks.harness import ProcessCost, Report, add_common, in_turns, program, run_process

IMPORTS = {
    "Python alone": "pass",
    "import torch": "import torch",
    "import convs2s": "import convs2s",
    "import convs2s.package.translator": "import convs2s.package.translator",
}
COLUMNS = ("command", "seconds", "lowest", "highest", "processor seconds", "lowest", "highest")
SENTENCE = "A man in a blue shirt is standing on a ladder.\n"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what to leave out."""
    add_common(parser, "rounds", model=None)
    parser.add_argument("--no-dvc", dest="dvc", action="store_false", help="leave out DVC's commands")


def measure(options: argparse.Namespace, report: Report) -> None:
    """Measure all commands."""
    commands = {name: [sys.executable, "-c", code] for name, code in IMPORTS.items()}
    if options.model is not None:
        translate = ["-m", "convs2s.cli", "translate", "--model", str(options.model), "--device", "cpu"]
        commands["translate one sentence"] = [sys.executable, *translate]
    if options.dvc:
        dvc = [sys.executable, "-m", "dvc"]
        commands |= {"dvc status": [*dvc, "status"], "dvc repro, up to date": [*dvc, "repro"]}
    environment = {**os.environ, "DVC_NO_ANALYTICS": "1"}
    ways = {name: partial(run_process, args, SENTENCE, env=environment) for name, args in commands.items()}
    report.table(COLUMNS)
    for name, costs in in_turns(ways, options.rounds).items():
        spreads = ProcessCost.spreads(costs)
        seconds, processor = spreads["seconds"], spreads["processor_seconds"]
        report.add(name, *seconds.values(), *processor.values(), command=name, **spreads)


main = program(__doc__, add_options, measure, packages=["numba", "dvc", "sacremoses"])

if __name__ == "__main__":
    main()
