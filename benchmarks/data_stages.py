"""Time, memory and disk of the data stages by number of pairs, extrapolated to the paper's 36 million.

    python -m benchmarks.data_stages --pairs 100000 200000 400000 [--results FILE]

Pairs have the lengths and the Zipf-distributed vocabulary of WMT. Each stage runs as in dvc.yaml, with the
parameters of params.yaml, 40,000 vocabulary entries and alignment, in its own folder, which is deleted at
the end. Memory is the total over all processes of the stage (PSS: shared pages count once), disk that of the
folder; both are sampled, and Linux only. With --results, sizes can be measured one by one: the second table
has all that are in the file.

Extrapolated values are the larger of a power law, whose exponent is shown, and of a straight line. The error
is that of the largest measured size if it is extrapolated from the others in the same way.
"""

import argparse
import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, astuple, dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from tqdm import tqdm

from benchmarks.corpus import sample
from convs2s.base.files import read_json, write_folder, write_json
from convs2s.config.load import load_params
from convs2s.config.section import NOTHING

ROOT = Path(__file__).resolve().parent.parent
VALID_PAIRS = 1000
VOCABULARY = 40_000
SAMPLE_SECONDS = 0.2
PAPER_PAIRS = 36_000_000

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
    "vocabulary": {"start": NOTHING, "train": "data/filtered/train", "out": "data/vocabulary"},
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
    """Peak of all its processes together, in MiB."""
    disk: float
    """Peak of what it adds to the folder, in MiB."""


def main(options: Sequence[str] | None = None) -> None:
    """Print a row for every stage and corpus size, then what larger corpora would take."""
    arguments = parse(options)
    results = arguments.results
    rows = read_json(results)["rows"] if results and results.exists() else []
    print("| stage | pairs | seconds | CPU seconds | memory, MiB | disk, MiB |")
    print("|---|---:|---:|---:|---:|---:|")
    for pairs in arguments.pairs:
        with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
            for stage, cost in measure_all(Path(folder), pairs, arguments.params, arguments.last):
                rows.append({"stage": stage, "pairs": pairs, **asdict(cost)})
                print(f"| {stage} | {pairs:,} |", *(f"{value:,.1f} |" for value in astuple(cost)), flush=True)
                if results:
                    write_json(results, {"rows": rows})
    print(f"\n| stage | quantity | exponent | at {PAPER_PAIRS:,} pairs | error |\n|---|---|---:|---:|---:|")
    table = pd.DataFrame(rows).groupby(["stage", "pairs"], sort=False).median().reset_index("pairs")
    for stage in STAGES:
        found = table.loc[[stage]].sort_values("pairs") if stage in table.index else table[:0]
        for quantity in list(Cost.__annotations__) if len(found) > 2 else []:
            exponent, value, error = extrapolate(found["pairs"].to_numpy(), found[quantity].to_numpy())
            print(f"| {stage} | {quantity} | {exponent:.2f} | {value:,.0f} | {error:+.0%} |")


def extrapolate(pairs: NDArray[np.int64], values: NDArray[np.float64]) -> tuple[float, float, float]:
    """Return the exponent, the value for the paper's corpus, and the relative error of the last value.

    Args:
        pairs: at least three sizes, in ascending order.
        values: measured at these sizes.
    """

    def predict(count: int, size: int) -> tuple[float, float]:
        """Return the exponent and the value at a size, from the first `count` measurements."""
        x, y = pairs[:count], np.maximum(values[:count], 1e-3)
        exponent, factor = np.polyfit(np.log(x), np.log(y), 1)
        line = np.polyval(np.polyfit(x, y, 1, w=1 / y), size)
        return float(exponent), float(max(np.exp(factor) * size**exponent, line))

    exponent, value = predict(len(pairs), PAPER_PAIRS)
    return exponent, value, predict(len(pairs) - 1, pairs[-1])[1] / values[-1] - 1


def parse(options: Sequence[str] | None) -> argparse.Namespace:
    """Return the command line's options."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    sizes = [100_000, 200_000, 400_000]
    parser.add_argument("--pairs", type=int, nargs="*", default=sizes, help="sizes of corpora")
    parser.add_argument("--last", choices=STAGES, default="candidates", help="stop after this stage")
    parser.add_argument("--params", type=Path, default=ROOT / "params.yaml", help="parameters of the stages")
    parser.add_argument("--folder", type=Path, help="working folder; default: the system's temporary folder")
    parser.add_argument(
        "--results", type=Path, metavar="FILE", help="JSON file that measurements are added to"
    )
    return parser.parse_args(options)


def measure_all(folder: Path, pairs: int, params: Path, last: str) -> Iterator[tuple[str, Cost]]:
    """Run the stages in order on a corpus of this many pairs; yield each with its cost."""
    content = load_params(params).model_dump(mode="json")
    content["replace"]["enabled"] = True  # otherwise nothing would be aligned
    content["candidates"]["per_source"] = 1000
    content["vocabulary"] |= {"source_size": VOCABULARY, "target_size": VOCABULARY}
    content["filter"]["max_overlap"] = None  # samples of the same sentences overlap
    write_json(folder / "params.yaml", content)
    write_folder(folder / "data/raw/train", sample(pairs, seed=1))
    write_folder(folder / "data/tokenized/augmented", [])
    for split in ("tokenized/valid", "raw/valid", "raw/development", "raw/test"):
        write_folder(folder / "data" / split, sample(VALID_PAIRS, seed=2))
    for stage, paths in STAGES.items():
        options = [f"--{name}={path}" for name, path in paths.items()]
        yield stage, measure([sys.executable, "-m", "pipelines.stages", stage, *options], folder)
        if stage == last:
            return


def measure(command: list[str], folder: Path) -> Cost:
    """Run a command in a folder; return its cost.

    Raises:
        subprocess.CalledProcessError: if it fails, after showing its stderr.
    """
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    with tempfile.TemporaryFile() as errors:
        # Its own session identifies the processes that belong to it.
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stderr=errors, start_new_session=True
        )
        try:
            status, cost = watch(process.pid, folder)
        except BaseException:
            # Ctrl-C does not reach another session: the stage would continue in a deleted folder.
            os.killpg(process.pid, signal.SIGKILL)
            raise
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            errors.seek(0)
            tqdm.write(errors.read().decode(errors="replace"), file=sys.stderr)
            raise subprocess.CalledProcessError(process.returncode, command)
    return cost


def watch(leader: int, folder: Path) -> tuple[int, Cost]:
    """Wait for the first process of a new session, which writes to a folder; return its status and cost."""
    start, memory, before = time.perf_counter(), 0.0, disk_usage(folder)
    disk = before
    while True:
        ended, status, usage = os.wait4(leader, os.WNOHANG)
        disk = max(disk, disk_usage(folder))
        if ended:
            seconds = time.perf_counter() - start
            return status, Cost(seconds, usage.ru_utime + usage.ru_stime, memory, disk - before)
        memory = max(memory, session_memory(leader))
        time.sleep(SAMPLE_SECONDS)


def disk_usage(folder: Path) -> float:
    """Return the size of a folder's files, in MiB."""
    total = 0
    for path in folder.rglob("*"):
        with contextlib.suppress(OSError):  # it may just have been removed
            total += path.stat().st_size
    return total / 2**20


def session_memory(session: int) -> float:
    """Return the total memory of a session's processes, in MiB."""
    total = 0
    for process in Path("/proc").glob("[0-9]*"):
        # A process may end between two reads, and we may not read other users' processes.
        with contextlib.suppress(OSError):
            fields = (process / "stat").read_text().rpartition(")")[2].split()
            if int(fields[3]) == session:
                found = re.search(r"^Pss: +(\d+) kB", (process / "smaps_rollup").read_text(), re.MULTILINE)
                total += int(found[1]) if found else 0
    return total / 1024


if __name__ == "__main__":
    main()
