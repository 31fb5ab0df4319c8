"""Do memory or file descriptors grow over time? `python -m tests.faults.leaks MINUTES COMMAND ...`.

Watches a command and its children from outside: `dvc repro train@1` for a training, best with 20 as
`train.checkpoint_updates`, or, after `seq 1000000 |`, `convs2s translate --model data/models/1` for a pipe.
"""

import argparse
import contextlib
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator

import psutil


def watch(command: list[str], seconds: float) -> Iterator[tuple[float, int]]:
    """Run a command; yield its megabytes and file descriptors, children included, every second."""
    with subprocess.Popen(command) as process:
        begin, program = time.monotonic(), psutil.Process(process.pid)
        while process.poll() is None and time.monotonic() - begin < seconds:
            memory, descriptors = 0.0, 0
            for one in (program, *program.children(recursive=True)):
                with contextlib.suppress(psutil.Error):
                    memory += one.memory_info().rss / 1e6
                    descriptors += one.num_fds()
            yield memory, descriptors
            time.sleep(1)
        process.terminate()


def main() -> None:
    """Print a line per minute, and how far the last quarter exceeds the second."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("minutes", type=float)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    memory, descriptors = list[float](), list[int]()
    for megabytes, count in watch(options.command, 60 * options.minutes):
        memory.append(megabytes)
        descriptors.append(count)
        if len(memory) % 60 == 0:
            print(f"{megabytes:.1f} MB, {count} descriptors", file=sys.stderr)
    quarter = len(memory) // 4
    second, last = slice(quarter, 2 * quarter), slice(-quarter, None)
    more = statistics.median(memory[last]) - statistics.median(memory[second])
    opened = max(descriptors[last]) - max(descriptors[second])
    print(f"The last quarter has {more:+.1f} MB and {opened:+} descriptors.", file=sys.stderr)


if __name__ == "__main__":
    main()
