"""As many threads for a training on a CPU as other processes leave cores: with more, it is slower.

A thread that waits for a core holds up the others: two can be half as fast as one.
"""

import math
import os
import time
from pathlib import Path
from types import TracebackType

import torch

from convs2s.base.messages import inflect
from convs2s.train.choose_layers import is_same_with
from convs2s.train.training import Training

STAT = Path("/proc/stat")
FIRST, LONGEST = 0.5, 10.0
"""Seconds between two looks at other processes: an interval is twice the one before, if not longer."""
IDLE, IOWAIT = 3, 4  # columns of /proc/stat
NEARLY = 0.5
"""Threads for which there may be no core: short work of others is no reason to have fewer."""


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


class ThreadsByCores:
    """Gives a training on a CPU as many threads as there are free cores, and at most those that it had.

    Only if it is one process, OMP_NUM_THREADS is not set, and results stay the same to the last bit: before
    another number of threads is used, loss and gradients of a few sentence pairs are computed with both.
    Otherwise, a warning says once what other processes take. Elsewhere than on Linux nothing is done.
    """

    def __init__(self, training: Training) -> None:
        workers = training.workers
        self.training, self.processes = training, workers.local
        self.most = torch.get_num_threads()
        self.same = {self.most}  # numbers of threads that give the same results
        self.may_change = workers.count == 1 and "OMP_NUM_THREADS" not in os.environ
        self.interval = FIRST if workers.device.type == "cpu" and STAT.is_file() else math.inf
        self.said = False
        self.look()

    def __enter__(self) -> "ThreadsByCores":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        torch.set_num_threads(self.most)

    def look(self) -> None:
        """Note how busy the cores have been so far, and this process."""
        self.stat = STAT.read_text() if self.interval < math.inf else ""
        self.own, self.since = time.process_time(), time.monotonic()

    def follow(self) -> str | None:
        """Between two updates: have as many threads as cores are free; return what is to be said, or None."""
        passed = time.monotonic() - self.since
        if passed < self.interval:
            return None
        # The cores that the training has used are free for it.
        used = self.processes * (time.process_time() - self.own) / passed
        free = count_free(self.stat, STAT.read_text()) + used
        self.interval = min(2 * self.interval, LONGEST)
        wanted = min(max(int(free / self.processes + NEARLY), 1), self.most)
        said = self.change(wanted, free)
        self.look()
        return said

    def change(self, wanted: int, free: float) -> str | None:
        """Have so many threads, if that is possible; return what is to be said, or None."""
        now = torch.get_num_threads()
        if wanted == now:
            return None
        cores = len(read_times(self.stat))
        taken = max(cores - free, 0.0)
        if not self.may_change or not (wanted in self.same or is_same_with(self.training, wanted)):
            self.interval = math.inf  # this is said once
            return (
                f"warning: other processes use {taken:.1f} of {inflect(cores, 'core')}, and training has "
                f"{inflect(self.processes * now, 'thread')}, so it is slower than alone. A thread that waits "
                "for a core holds up the others: two can be half as fast as one. With fewer, which may round "
                f"differently: OMP_NUM_THREADS={wanted}"
            )
        self.same.add(wanted)
        torch.set_num_threads(wanted)
        if self.said:
            return None
        self.said = True
        return (
            f"Other processes use {taken:.1f} of {inflect(cores, 'core')}: training goes on with "
            f"{inflect(wanted, 'thread')}, and has more again when cores are free, with the same results."
        )
