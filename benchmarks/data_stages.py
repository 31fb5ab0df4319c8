"""Time, memory and disk of the data stages by number of pairs, extrapolated to the paper's 36 million.

    python -m benchmarks.data_stages --pairs 100000 200000 400000 [--json FILE]

Pairs have the lengths and the Zipf-distributed vocabulary of WMT. Each stage runs as in dvc.yaml, with the
parameters of params.yaml, 40,000 vocabulary entries and alignment, in its own folder, which is deleted at
the end. Memory is what all processes of the stage need together; mapped is what they have in memory of files,
such as the aligner's tables, which the system drops where others need room, so that it says nothing about
the machine that a corpus needs. Disk is that of the folder. All three are sampled, and Linux only. With
--json, sizes can be measured one by one: the second table has all that are in the file.

Extrapolated values are on a straight line through the measured ones: in the number of pairs for time and
disk, in the number of distinct words for memory. The error is that of the largest measured size if it is
extrapolated from the others in the same way.
"""

import argparse
import contextlib
import os
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, astuple, dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import psutil
from numpy.typing import NDArray

from benchmarks.corpus import EXPONENT, sample
from benchmarks.harness import Report, program, run_process
from convs2s.base.files import read_json, write_folder, write_json
from convs2s.config.load import load_params
from convs2s.config.section import NOTHING

ROOT = Path(__file__).resolve().parent.parent
VALID_PAIRS = 1000
VOCABULARY = 40_000
SAMPLE_SECONDS = 0.2
PAPER_PAIRS = 36_000_000
GROWTH = {"seconds": 1.0, "cpu_seconds": 1.0, "memory": 1 / EXPONENT, "disk": 1.0}
"""The power of the number of pairs with which each cost grows: for memory, that of distinct words in them."""

# Each stage with its arguments, as in dvc.yaml.
STAGES = {
    "tokenize": {"truecasers": "data/truecasers", "raw": "data/raw/train", "out": "data/tokenized/train"},
    "filter": {
        "raw": "data/raw",
        "train": "data/tokenized/train",
        "augmented": "data/tokenized/augmented",
        "valid": "data/tokenized/valid",
        "out": "data/filtered",
    },
    "vocabulary": {"train": "data/filtered/train", "out": "data/vocabulary"},
    "encode": {"vocabulary": "data/vocabulary", "pairs": "data/filtered/train", "out": "data/encoded/train"},
    "align": {
        "source": "data/filtered/train/source.txt",
        "target": "data/filtered/train/target.txt",
        "out": "data/alignment",
    },
    "candidates": {"encoded": "data/encoded/train", "out": "data/candidates"},
}


@dataclass(frozen=True)
class Cost:
    """The cost of a stage."""

    seconds: float
    """Wall time, including the start of Python."""
    cpu_seconds: float
    """Over all cores; unlike wall time, hardly affected by other load."""
    memory: float
    """Peak of all its processes together, without mapped files, in MiB."""
    mapped: float
    """Peak of the parts of mapped files in memory, in MiB."""
    disk: float
    """Peak of what it adds to the folder, in MiB."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the sizes of corpora, and the stages."""
    add = parser.add_argument
    add("--pairs", type=int, nargs="*", default=[100_000, 200_000, 400_000], help="sizes of corpora")
    add("--last", choices=STAGES, default="candidates", help="stop after this stage")
    add("--params", type=Path, default=ROOT / "params.yaml", help="parameters of the stages")
    add("--folder", type=Path, help="working folder; default: the system's temporary folder")


def measure(options: argparse.Namespace, report: Report) -> None:
    """Add a row for every stage and corpus size, then print what larger corpora would take."""
    if options.json and options.json.exists():
        report.results += read_json(options.json)["results"]
    report.table(("stage", "pairs", "seconds", "CPU seconds", "memory, MiB", "mapped, MiB", "disk, MiB"))
    for pairs in options.pairs:
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            for stage, cost in measure_all(Path(folder), pairs, options.params, options.last):
                report.add(stage, f"{pairs:,}", *astuple(cost), stage=stage, pairs=pairs, **asdict(cost))
    report.table(("stage", "quantity", f"at {PAPER_PAIRS:,} pairs", "error"))
    for row in estimate(pd.DataFrame(report.results)):
        report.print_row(row)


def estimate(rows: pd.DataFrame) -> list[tuple[object, ...]]:
    """Return what each quantity of a stage that was measured at three sizes or more grows to."""
    table = rows.groupby(["stage", "pairs"], sort=False).median().reset_index("pairs")
    estimates: list[tuple[object, ...]] = []
    for stage in STAGES:
        if stage not in table.index:
            continue
        costs = table.loc[[stage]].sort_values("pairs")
        if len(costs) < 3:
            continue
        for quantity, power in GROWTH.items():
            value, error = extrapolate(costs["pairs"].to_numpy(), costs[quantity].to_numpy(), power)
            estimates.append((stage, quantity, value, f"{error:+.0%}"))
    return estimates


def extrapolate(pairs: NDArray[np.int64], values: NDArray[np.float64], power: float) -> tuple[float, float]:
    """Return the value for the paper's corpus, and the relative error of the last value.

    Args:
        pairs: at least three sizes, in ascending order.
        values: measured at these sizes.
        power: of the number of pairs in which the values are a straight line.
    """

    def predict(count: int, size: int) -> float:
        """Return the value at a size, from the first `count` measurements."""
        x, y = pairs[:count] ** power, np.maximum(values[:count], 1e-3)
        return float(np.polyval(np.polyfit(x, y, 1, w=1 / y), size**power))

    return predict(len(pairs), PAPER_PAIRS), predict(len(pairs) - 1, pairs[-1]) / values[-1] - 1


def measure_all(folder: Path, pairs: int, params: Path, last: str) -> Iterator[tuple[str, Cost]]:
    """Run the stages in order on a corpus of this many pairs; yield each with its cost."""
    content = load_params(params).model_dump(mode="json")
    content["replace"]["enabled"] = True  # otherwise nothing would be aligned
    content["candidates"]["per_source"] = 1000
    content["vocabulary"] |= {"source_size": VOCABULARY, "target_size": VOCABULARY}
    content["train"]["start_from"] = NOTHING
    content["filter"]["max_overlap"] = None  # samples of the same sentences overlap
    write_json(folder / "params.yaml", content)
    write_folder(folder / "data/raw/train", sample(pairs, seed=1))
    write_folder(folder / "data/tokenized/augmented", [])
    for split in ("tokenized/valid", "raw/valid", "raw/development", "raw/test"):
        write_folder(folder / "data" / split, sample(VALID_PAIRS, seed=2))
    for stage, paths in STAGES.items():
        options = [f"--{name}={path}" for name, path in paths.items()]
        yield stage, measure_stage([sys.executable, "-m", "pipelines.stages", stage, *options], folder)
        if stage == last:
            return


def measure_stage(command: list[str], folder: Path) -> Cost:
    """Run a command in a folder; return its cost."""
    disk_before = disk_usage(folder)
    memory, disk = [Memory(0.0, 0.0)], [disk_before]

    def watch(process: int) -> None:
        """Sample memory and disk."""
        with contextlib.suppress(psutil.Error):  # it may just have ended
            memory.append(memory_usage(psutil.Process(process)))
        disk.append(disk_usage(folder))
        time.sleep(SAMPLE_SECONDS)

    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    cost = run_process(command, watch=watch, cwd=folder, env=environment)
    disk.append(disk_usage(folder))
    own, mapped = map(max, zip(*memory, strict=True))
    return Cost(cost.seconds, cost.processor_seconds, own, mapped, max(disk) - disk_before)


def disk_usage(folder: Path) -> float:
    """Return the size of a folder's files, in MiB."""
    total = 0
    for path in folder.rglob("*"):
        with contextlib.suppress(OSError):  # it may just have been removed
            total += path.stat().st_size
    return total / 2**20


class Memory(NamedTuple):
    """What processes have in memory, in MiB; pages that several share count once."""

    own: float
    mapped: float
    """Of files, libraries included."""


def memory_usage(process: psutil.Process) -> Memory:
    """Return the total memory of a process and all below it."""
    own = mapped = 0
    with contextlib.suppress(psutil.Error, OSError):  # any may end between two reads
        for member in [process, *process.children(recursive=True)]:
            text = Path(f"/proc/{member.pid}/smaps_rollup").read_text(encoding="ascii")
            kilobytes = {name: int(value) for name, value in re.findall(r"^(Pss\w*): +(\d+) kB", text, re.M)}
            mapped += kilobytes["Pss_File"]
            own += kilobytes["Pss"] - kilobytes["Pss_File"]
    return Memory(own / 2**10, mapped / 2**10)


main = program(__doc__, add_options, measure)

if __name__ == "__main__":
    main()
