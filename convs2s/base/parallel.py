"""Pools of processes and threads, for a stream of chunks and for compiled work."""

import functools
import itertools
import multiprocessing
import os
import re
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from convs2s.base.processes import end_with_parent
from convs2s.watch.progress_bar import ProgressBar

Item = TypeVar("Item")
Result = TypeVar("Result")

make_work: Callable[[], Callable[[Any], Any]] | None = None
"""In a worker process: the factory of its function."""


def cores() -> int:
    """Return the number of cores that this process may use; the machine may have more."""
    affinity = getattr(os, "sched_getaffinity", None)  # Linux only
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def available_memory() -> int:
    """Return the bytes of memory that this process may still use; on systems other than Linux, no limit."""
    meminfo, group = Path("/proc/meminfo"), Path("/sys/fs/cgroup/memory.max")
    found = (
        re.search(r"^MemAvailable: +(\d+) kB", meminfo.read_text(), re.MULTILINE)
        if meminfo.exists()
        else None
    )
    limit = group.read_text().strip() if group.exists() else "max"
    return min(int(found[1]) << 10 if found else sys.maxsize, int(limit) if limit != "max" else sys.maxsize)


def map_chunks(
    make: Callable[[], Callable[[list[Item]], Result]],
    items: Iterable[Item],
    chunk_size: int,
    title: str,
    workers: int | None = None,
) -> Iterator[Result]:
    """Yield the result of a function for each chunk of items, in order, with a progress bar on stderr.

    A stream of at most two chunks is processed in this process: starting others would take longer.

    Args:
        make: returns the function; called once in each process. Only `make` is pickled, not the function,
            which may therefore hold models, regular expressions and caches.
        title: of the progress bar.
        items: read as needed: at most two chunks per worker are in memory.
        workers: processes; None for one per core.

    Raises:
        ChildProcessError: if a process dies, for example because memory runs out.
        Exception: whatever `make` or the function raises, with its message.
    """
    workers = cores() if workers is None else workers
    stream = iter(items)
    chunks = iter(lambda: list(itertools.islice(stream, chunk_size)), [])
    first = list(itertools.islice(chunks, 3))
    everything = itertools.chain(first, chunks)
    results: Iterator[tuple[int, Result]]
    if workers == 1 or len(first) < 3:
        function = make()
        results = ((len(chunk), function(chunk)) for chunk in everything)
    else:
        results = compute_in_processes(make, everything, workers)
    with ProgressBar(desc=title, unit=" lines", unit_scale=True) as progress:
        for size, result in results:
            progress.advance(size)
            yield result


def with_progress(items: Iterable[Item], title: str, unit: str) -> Iterator[Item]:
    """Yield the items, with a progress bar on stderr."""
    with ProgressBar(desc=title, unit=f" {unit}", unit_scale=True) as progress:
        for item in items:
            progress.advance()
            yield item


def compute_in_processes(
    make: Callable[[], Callable[[list[Item]], Result]], chunks: Iterable[list[Item]], workers: int
) -> Iterator[tuple[int, Result]]:
    """Yield each chunk's size and result in order, computed in other processes."""
    # Not fork: it would copy locks that another thread of this process may hold.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, mp_context=context, initializer=prepare, initargs=(make,))
    waiting: deque[tuple[int, Future[Result]]] = deque()
    try:
        for chunk in itertools.chain(chunks, itertools.repeat(None)):
            if chunk is not None:
                waiting.append((len(chunk), pool.submit(apply, chunk)))
            elif not waiting:
                return
            if chunk is None or len(waiting) == 2 * workers:
                size, future = waiting.popleft()
                yield size, future.result()
    except BrokenProcessPool as error:
        raise ChildProcessError(
            f"one of {workers} worker processes died before its chunk was done; expected all to finish. Did "
            "memory run out? Free some, or allow fewer cores (taskset --cpu-list 0 COMMAND)."
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


def prepare(make: Callable[[], Callable[[Any], Any]]) -> None:
    """Store `make` in a new worker process; `apply` calls it, so that its errors are reported, not lost.

    The worker also watches its parent: otherwise it would wait for chunks even after that has been killed.
    """
    parent = multiprocessing.parent_process()
    assert parent is not None and parent.pid is not None
    end_with_parent(parent.pid)
    global make_work  # noqa: PLW0603 - a worker process has nowhere else to keep it
    make_work = make


@functools.cache
def work() -> Callable[[Any], Any]:
    """Return a worker process's function, made once."""
    assert make_work is not None
    return make_work()


def apply(chunk: list[Any]) -> Any:
    """Return the function's result in a worker process."""
    return work()(chunk)


class Threads(ThreadPoolExecutor):
    """A fixed number of threads; independent tasks give the same results with any number of threads."""

    def __init__(self, count: int) -> None:
        super().__init__(count)
        self.count = count

    def share(self, offsets: NDArray[np.int64], function: Callable[..., None], *arguments: Any) -> None:
        """Call function(first, last, *arguments) for ranges that together cover all items, and wait.

        Args:
            offsets: where each item's work begins, then the end; ranges have about equal amounts of work.
            function: compiled, so that threads run in parallel.
            arguments: passed on.
        """
        cuts = np.searchsorted(offsets, np.linspace(0, offsets[-1], self.count + 1)[1:-1])
        bounds = itertools.pairwise([0, *cuts.tolist(), len(offsets) - 1])
        tasks = [self.submit(function, first, last, *arguments) for first, last in bounds]
        for task in tasks:
            task.result()
