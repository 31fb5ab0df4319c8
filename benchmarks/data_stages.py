"""Time and memory of the data stages on many pairs, to check that time is linear and memory constant.

    python -m benchmarks.data_stages --pairs 100000 1000000

Each stage runs as in dvc.yaml, with the parameters of params.yaml, in its own folder, which is deleted
at the end. Memory is the total over all processes of the stage (PSS: shared pages count once), sampled
ten times a second; Linux only.
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
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tqdm import tqdm

from benchmarks.corpus import sample
from convs2s.config.load import load_params
from convs2s.text.corpus.files import write_folder, write_json

ROOT = Path(__file__).resolve().parent.parent
VALID_PAIRS = 1000
SAMPLE_SECONDS = 0.1

# Each stage with its arguments, as in dvc.yaml.
STAGES = {
    "tokenize": {"truecasers": "data/truecasers", "raw": "data/raw/train", "out": "data/tokenized/train"},
    "filter": {
        "raw": "data/raw",
        "train": "data/tokenized/train",
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
}


@dataclass(frozen=True)
class Cost:
    """The cost of a stage."""

    seconds: float  # wall time, including the start of Python
    work: float  # CPU seconds over all cores; unlike wall time, hardly affected by other load
    together: float  # peak total memory of all its processes, in MiB
    largest: float  # peak memory of its largest process, in MiB


def main() -> None:
    """Print a table row for every stage and corpus size."""
    arguments = parse()
    print("| stage | pairs | seconds | pairs/s | CPU seconds | peak MiB, all processes | largest process |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for pairs in arguments.pairs:
        with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
            for stage, cost in measure_all(Path(folder), pairs, arguments.params, arguments.last):
                print(
                    f"| {stage} | {pairs:,} | {cost.seconds:.1f} | {pairs / cost.seconds:,.0f} "
                    f"| {cost.work:.1f} | {cost.together:,.0f} | {cost.largest:,.0f} |",
                    flush=True,
                )


def parse() -> argparse.Namespace:
    """Return the command line's options."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--pairs", type=int, nargs="+", default=[20_000, 100_000], help="sizes of corpora")
    parser.add_argument("--last", choices=STAGES, default="align", help="stop after this stage")
    parser.add_argument("--params", type=Path, default=ROOT / "params.yaml", help="parameters of the stages")
    parser.add_argument("--folder", type=Path, help="working folder; default: the system's temporary folder")
    return parser.parse_args()


def measure_all(folder: Path, pairs: int, params: Path, last: str) -> Iterator[tuple[str, Cost]]:
    """Run the stages in order on a corpus of this many pairs; yield each with its cost."""
    content = load_params(params).model_dump(mode="json")
    content["replace"]["enabled"] = True  # otherwise nothing would be aligned
    write_json(folder / "params.yaml", content)
    write_folder(folder / "data/raw/train", sample(pairs, seed=1))
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
            status, cost = watch(process.pid)
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


def watch(leader: int) -> tuple[int, Cost]:
    """Wait for the first process of a new session; return its wait status and cost."""
    start, together = time.perf_counter(), 0.0
    while True:
        ended, status, usage = os.wait4(leader, os.WNOHANG)
        if ended:
            seconds = time.perf_counter() - start
            return status, Cost(seconds, usage.ru_utime + usage.ru_stime, together, usage.ru_maxrss / 1024)
        together = max(together, session_memory(leader))
        time.sleep(SAMPLE_SECONDS)


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
