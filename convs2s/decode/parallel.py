"""Parallel work in processes that share this one's memory: the weights and everything else loaded."""

import gc
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Any, TypeVar

import torch

from convs2s.base.parallel import end_with_parent

Item = TypeVar("Item")
Result = TypeVar("Result")
WORK: list[Callable[[Any], Any]] = []
"""In a forked process: what it does with an item."""


def run_in_processes(
    work: Callable[[Item], Result], items: Sequence[Item], processes: int
) -> Iterator[Result]:
    """Yield what `work` returns for each item, in order; an error ends all.

    Processes are forked: nothing is loaded again, and memory is copied only when written to. Each process
    uses one thread and takes the next item when it finishes one. Put the longest items first.

    Args:
        work: any function; its side effects are lost.
        items: need not be picklable, but results must be.
        processes: 1 works in this process, as does a single item.
    """
    number = min(processes, len(items))
    if number < 2:
        yield from map(work, items)
        return
    with fork(number, lambda i: work(items[i])) as pool:
        yield from pool.map(do_work, range(len(items)))


@contextmanager
def fork(processes: int, work: Callable[[Any], Any]) -> Iterator[ProcessPoolExecutor]:
    """Return a pool of processes for `do_work`; the first error ends them."""
    context = multiprocessing.get_context("fork")
    pool = ProcessPoolExecutor(processes, context, initializer=begin_process, initargs=(os.getpid(), work))
    try:
        yield pool
    except BrokenProcessPool:
        raise ChildProcessError(
            f"one of {processes} processes died before its batch was done. "
            "Did memory run out? Free some, or use fewer processes."
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)


def run_beside(work: Callable[[Item], Result], items: Iterable[Item], processes: int) -> Iterator[Result]:
    """Yield what `work` returns for each item, in order, while this process is making later items.

    As `run_in_processes`, but items must be picklable. A single process makes all items first.
    """
    if processes < 2:
        # In turns, a search on a CPU and the work on its words take 3 % longer than one after the other.
        yield from map(work, list(items))
        return
    with fork(processes, work) as pool:
        results = [pool.submit(do_work, item) for item in items]
        yield from (result.result() for result in results)


def begin_process(parent: int, work: Callable[[Any], Any]) -> None:
    """Begin a forked process; `parent` is the one that waits for the results."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    end_with_parent(parent)
    gc.freeze()  # scanning shared objects would copy them
    torch.set_num_threads(1)
    WORK[:] = [work]


def do_work(item: Any) -> Any:
    """Do the work of an item, in a forked process."""
    [work] = WORK
    return work(item)
