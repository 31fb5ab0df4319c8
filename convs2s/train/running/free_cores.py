"""Whether a training on a CPU has the cores for its threads: beside other processes, more are slower."""

import os
import time
from pathlib import Path

import torch

from convs2s.base.messages import inflect

STAT = Path("/proc/stat")
SECONDS = 0.1
"""How long other processes are watched, while this one waits."""
IDLE, IOWAIT = 3, 4  # columns of /proc/stat
NEARLY = 0.5
"""Threads for which there may be no core: short work of others is no reason to complain."""


def read_times(stat: str) -> dict[int, tuple[int, int]]:
    """Return of each core that this process may use its idle time and all its time, in ticks since boot."""
    times: dict[int, tuple[int, int]] = {}
    for line in stat.splitlines():
        name, *columns = line.split()
        number = name.removeprefix("cpu")
        if name != number and number.isdigit() and int(number) in os.sched_getaffinity(0):
            ticks = [int(column) for column in columns[:8]]  # the others are part of these
            times[int(number)] = ticks[IDLE] + ticks[IOWAIT], sum(ticks)
    return times


def count_free(before: str, after: str) -> float:
    """Return how many cores were idle, in sum, between two states of /proc/stat."""
    later = read_times(after)
    free = 0.0
    for core, (idle, total) in read_times(before).items():
        passed = later[core][1] - total
        free += (later[core][0] - idle) / passed if passed else 1.0
    return free


def warn_if_busy(workers: int) -> str | None:
    """Return a warning if other processes use the cores that the threads of all workers need; or None.

    Nothing is changed: another number of threads would round differently.
    """
    if not STAT.is_file():
        return None
    before = STAT.read_text()
    time.sleep(SECONDS)
    after = STAT.read_text()
    threads = torch.get_num_threads()
    cores = len(read_times(before))
    free = count_free(before, after)
    if not cores or workers * threads <= free + NEARLY:
        return None
    warning = (
        f"warning: other processes use {cores - free:.1f} of {inflect(cores, 'core')}, and training has "
        f"{inflect(workers * threads, 'thread')}, so it is slower than alone."
    )
    fewer = max(int(free / workers), 1)
    if fewer < threads:
        warning += (
            " A thread that waits for a core holds up the others: two can be half as fast as one. With "
            f"fewer, which round differently: OMP_NUM_THREADS={fewer}"
        )
    return warning
