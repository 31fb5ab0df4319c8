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
"""Seconds to the first look at other processes; each interval is twice the one before, up to the second."""
IDLE, IOWAIT = 3, 4  # columns of /proc/stat
NEARLY = 0.5
"""Threads for which there may be no core: short work of others is no reason to have fewer."""


def read_times(stat: str) -> dict[int, tuple[int, int]]:
    """Return of each core that this process may use its idle time and all its time, in ticks since boot."""
    usable = os.sched_getaffinity(0)
    times: dict[int, tuple[int, int]] = {}
    for line in stat.splitlines():
        name, *columns = line.split()
        number = name.removeprefix("cpu")
        if name != number and number.isdigit() and int(number) in usable:
            ticks = [int(column) for column in columns[:8]]  # the others are part of these
            times[int(number)] = ticks[IDLE] + ticks[IOWAIT], sum(ticks)
    return times


def is_counted() -> bool:
    """Return whether the system says how busy the cores of this process are, as Linux does.

    A container may show other cores, by other numbers.
    """
    return STAT.is_file() and read_times(STAT.read_text()).keys() == os.sched_getaffinity(0)


def count_free(before: str, after: str) -> float:
    """Return how many cores were idle, in sum, between two states of /proc/stat."""
    earlier = read_times(before)
    later = read_times(after)
    free = 0.0
    for core in earlier.keys() & later.keys():  # taskset may change them at any time
        idle_before, total_before = earlier[core]
        idle, total = later[core]
        passed = total - total_before
        free += (idle - idle_before) / passed if passed else 1.0
    return free


class ThreadsByCores:
    """Gives a training on a CPU as many threads as there are free cores, and at most those that it had.

    Only if it is one process, OMP_NUM_THREADS is not set, and a batch gives the same results to the last bit:
    before another number of threads is used, its loss and gradients are computed with both. Otherwise, a
    warning says once what other processes take. The number is that of the whole program; leaving gives it
    back the threads that it had.
    """

    def __init__(self, training: Training) -> None:
        self.training = training
        self.processes = training.workers.local
        self.most = torch.get_num_threads()
        self.same = {self.most}  # numbers of threads that give the same results
        self.may_change = (
            training.workers.count == 1
            and "OMP_NUM_THREADS" not in os.environ
            # The comparison computes neither of these.
            and not training.params.compile
            and training.selection is None
        )
        self.interval = FIRST if training.workers.device.type == "cpu" and is_counted() else math.inf
        self.has_said = False
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
        self.own = time.process_time()
        self.since = time.monotonic()

    def follow(self) -> str | None:
        """Between two updates: have as many threads as cores are free; return what is to be said, or None."""
        passed = time.monotonic() - self.since
        if passed < self.interval:
            return None
        self.interval = min(2 * self.interval, LONGEST)
        now = STAT.read_text()
        cores = len(read_times(now))
        # The cores that the training has used are free for it.
        used = self.processes * (time.process_time() - self.own) / passed
        said = self.change(cores, min(count_free(self.stat, now) + used, float(cores)))
        self.look()
        return said

    def change(self, cores: int, free: float) -> str | None:
        """Have as many threads as cores are free, if that may be; return what is to be said, or None."""
        wanted = min(max(int(free / self.processes + NEARLY), 1), self.most)
        if not self.may_change:
            return self.warn(cores, free, wanted) if self.processes * self.most > free + NEARLY else None
        if wanted == torch.get_num_threads():
            return None
        if wanted not in self.same and not is_same_with(self.training, wanted):
            torch.set_num_threads(self.most)
            return self.warn(cores, free, wanted)
        self.same.add(wanted)
        torch.set_num_threads(wanted)
        if self.has_said:
            return None
        self.has_said = True
        return (
            f"Other processes use {cores - free:.1f} of {inflect(cores, 'core')}: training goes on with "
            f"{inflect(wanted, 'thread')}, which gives the same results, and has more when cores are free."
        )

    def warn(self, cores: int, free: float, wanted: int) -> str:
        """Look no more; return a warning."""
        self.interval = math.inf
        warning = (
            f"warning: other processes use {cores - free:.1f} of {inflect(cores, 'core')}, and training has "
            f"{inflect(self.processes * self.most, 'thread')}, so it is slower than alone."
        )
        if wanted < self.most:
            warning += (
                " A thread that waits for a core holds up the others: two can be half as fast as one. With "
                f"fewer, which may round differently: OMP_NUM_THREADS={wanted}"
            )
        return warning
