"""Do memory or file descriptors grow over time? `python -m tests.faults.leaks MINUTES COMMAND ...`.

Watches a command and its children from outside: `dvc repro train@1` for a training, best with 20 as
`train.checkpoint_updates`, or, after `seq 1000000 |`, `convs2s translate --model data/models/1` for a pipe.
"""

import argparse
import contextlib
import statistics
import subprocess
import time

import psutil


def main() -> None:
    """Print the medians of the second and the last quarter of the time."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("minutes", type=float)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    used = list[tuple[float, int]]()
    with subprocess.Popen(options.command) as process:
        begin, program = time.monotonic(), psutil.Process(process.pid)
        while process.poll() is None and time.monotonic() - begin < 60 * options.minutes:
            with contextlib.suppress(psutil.Error):  # a child has just ended
                family = [program, *program.children(recursive=True)]
                megabytes = sum(one.memory_info().rss for one in family) / 1e6
                used.append((megabytes, sum(one.num_fds() for one in family)))
            time.sleep(1)
        process.terminate()
    quarter = len(used) // 4
    for what, values in zip(("MB", "descriptors"), zip(*used, strict=True), strict=True):
        second, last = values[quarter : 2 * quarter], values[-quarter:]
        print(f"{what}: {statistics.median(second):.1f}, then {statistics.median(last):.1f}")


if __name__ == "__main__":
    main()
