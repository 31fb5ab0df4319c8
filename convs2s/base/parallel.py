"""Pools of processes for a stream of chunks; processes that end with their parent, even if it is killed."""

import ctypes
import functools
import itertools
import multiprocessing
import os
import pickle
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any, TypeVar

from convs2s.base.progress_bar import ProgressBar

Item = TypeVar("Item")
Result = TypeVar("Result")
MOST_PROCESSES = 2**12
"""Of a machine, threads as well as processes: no machine has more hardware threads."""


def cores() -> int:
    """Return the number of cores that this process may use; on macOS, which sets no limit, all there are."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def end_with_parent(parent: int) -> None:
    """Have the kernel kill this process when its parent exits, or the thread of it that started this process.

    The parent gives its own id: if it has already died, `os.getppid` returns another process. On macOS, whose
    kernel does not do this, only such a process ends.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    if os.getppid() != parent:
        os._exit(1)


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
        items: read as needed: at most two chunks per worker are in memory.
        workers: processes; None for one per core.
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
            progress.update(size)
            yield result


def with_progress(items: Iterable[Item], title: str, unit: str) -> Iterator[Item]:
    """Yield the items, with a progress bar on stderr."""
    with ProgressBar(desc=title, unit=f" {unit}", unit_scale=True) as progress:
        for item in items:
            progress.update()
            yield item


def compute_in_processes(
    make: Callable[[], Callable[[list[Item]], Result]], chunks: Iterable[list[Item]], workers: int
) -> Iterator[tuple[int, Result]]:
    """Yield each chunk's size and result in order, computed in other processes."""
    # Not fork: it would copy locks that another thread of this process may hold.
    context = multiprocessing.get_context("spawn")
    try:
        pool = ProcessPoolExecutor(
            workers, mp_context=context, initializer=end_with_parent, initargs=(os.getpid(),)
        )
    except OSError as error:
        raise OSError(
            "expected a /dev/shm that can be written, for the locks of worker processes, found none "
            f"({error}). Mount one, or allow one core: taskset --cpu-list 0 COMMAND"
        ) from error
    work = functools.partial(apply, pickle.dumps(make))
    waiting: deque[tuple[int, Future[Result]]] = deque()
    try:
        for chunk in chunks:
            waiting.append((len(chunk), pool.submit(work, chunk)))
            if len(waiting) == 2 * workers:
                size, future = waiting.popleft()
                yield size, future.result()
        while waiting:
            size, future = waiting.popleft()
            yield size, future.result()
    except BrokenProcessPool as error:
        raise ChildProcessError(
            f"one of {workers} worker processes died before its chunk was done; expected all to finish. Did "
            "memory run out? Free some, or allow fewer cores (taskset --cpu-list 0 COMMAND)."
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


@functools.cache
def make_once(pickled_make: bytes) -> Callable[[Any], Any]:
    """Return a worker's function; made with the first chunk, since a pool loses the errors of its start."""
    function: Callable[[Any], Any] = pickle.loads(pickled_make)()
    return function


def apply(pickled_make: bytes, chunk: list[Any]) -> Any:
    """Return the function's result in a worker process."""
    return make_once(pickled_make)(chunk)
