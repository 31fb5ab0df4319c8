"""Do memory or file descriptors grow over time? `python -m tests.faults.leaks training 10` (minutes).

Both are sampled from outside, in the process as users run it. `training` trains a tiny model, epoch after
epoch, with a checkpoint every 20 updates. `stream` has `convs2s translate` read an endless pipe.
"""

import argparse
import contextlib
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NamedTuple

import psutil

from convs2s.train.run import PATHS
from tests.package.small_package import WORDS, write_small_package
from tests.train.tiny import ROOT, tiny_params, write_tiny

ENDLESS = """
import sys
from pathlib import Path
from convs2s.config.load import load_params
from convs2s.train.run import train_model
params = load_params()
train_model(params.model, params.train, 1, *map(Path, sys.argv[1:]))
"""
EVERY = 1.0  # seconds between samples


class Sample(NamedTuple):
    """A process at one time: seconds since the first sample, work done, megabytes, descriptors, threads."""

    seconds: float
    done: int
    memory: float
    descriptors: int
    threads: int


def sample(process: psutil.Process, begin: float, done: int) -> Sample:
    """Return a sample of a process."""
    memory = process.memory_info().rss / 1e6
    return Sample(time.monotonic() - begin, done, memory, process.num_fds(), process.num_threads())


@contextlib.contextmanager
def started(arguments: list[str], folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run Python in a folder, with pipes; kill it at the end."""
    env = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, *arguments],
            cwd=folder,
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
        )
        try:
            yield process
        finally:
            process.kill()
            process.wait()


def training(folder: Path) -> Iterator[Sample]:
    """Train without end; yield a sample every second from the second epoch on."""
    write_tiny(folder)
    tiny_params(folder, max_epochs=10**6, min_epochs_before_anneal=10**6, checkpoint_updates=20)
    progress = folder / "work" / "progress.json"
    with started(["-c", ENDLESS, *PATHS], folder) as process:
        watched, begin = psutil.Process(process.pid), None
        while process.poll() is None:
            time.sleep(EVERY)
            done = json.loads(progress.read_text()) if progress.exists() else {"epoch": 1}
            if done["epoch"] > 1:
                begin = begin or time.monotonic()
                yield sample(watched, begin, done["epoch"])
        raise ChildProcessError((folder / "log").read_text())


def stream(folder: Path) -> Iterator[Sample]:
    """Translate lines without end; yield a sample every second from the first translation on."""
    package = write_small_package(folder)
    with started(["-m", "convs2s.cli", "translate", "--model", str(package)], folder) as process:
        assert process.stdin is not None and process.stdout is not None
        threading.Thread(target=write_lines, args=[process.stdin], daemon=True).start()
        process.stdout.readline()
        watched, begin, last = psutil.Process(process.pid), time.monotonic(), 0.0
        for number, _ in enumerate(process.stdout, start=2):
            if time.monotonic() - last >= EVERY:
                last = time.monotonic()
                yield sample(watched, begin, number)
        raise ChildProcessError((folder / "log").read_text())


def write_lines(stream: IO[bytes]) -> None:
    """Write lines of 2 to 13 words, no two alike, until the reader closes the pipe."""
    with contextlib.suppress(OSError, ValueError):
        for number in itertools.count():
            words = [WORDS[(number // (k + 1) + k) % len(WORDS)] for k in range(1 + number % 12)]
            stream.write(f"{' '.join(words)} {number}\n".encode())
            stream.flush()


def growth(samples: list[Sample]) -> tuple[float, int]:
    """Return how far the last quarter exceeds the second: in median megabytes, and in maximum descriptors."""
    quarter = len(samples) // 4
    parts = samples[quarter : 2 * quarter], samples[-quarter:]
    memory = [statistics.median(one.memory for one in part) for part in parts]
    descriptors = [max(one.descriptors for one in part) for part in parts]
    return memory[1] - memory[0], descriptors[1] - descriptors[0]


def main() -> None:
    """Print a line per minute, and the growth."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.leaks", description=__doc__)
    parser.add_argument("what", choices=["training", "stream"])
    parser.add_argument("minutes", type=float)
    options = parser.parse_args()
    samples: list[Sample] = []
    with tempfile.TemporaryDirectory() as temporary:
        for one in {"training": training, "stream": stream}[options.what](Path(temporary)):
            if one.seconds // 60 > (samples[-1].seconds // 60 if samples else -1):
                print(f"{one.seconds / 60:5.1f} min: {one.done:>9,} done, {one.memory:.1f} MB, ", end="")
                print(f"{one.descriptors} descriptors, {one.threads} threads", flush=True)
            samples.append(one)
            if one.seconds >= 60 * options.minutes:
                break
    memory, descriptors = growth(samples)
    print(f"{samples[-1].done:,} done; the last quarter has {memory:+.1f} MB and {descriptors:+} descriptors")


if __name__ == "__main__":
    main()
