"""Parallel work in processes that share this one's memory: the weights and everything else loaded."""

import gc
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any, TypeVar

import torch

from convs2s.base.parallel import end_with_parent

Item = TypeVar("Item")
Result = TypeVar("Result")
SHARED: list[Any] = []
"""In a forked process: the work and its items."""


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
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(number, context, initializer=share, initargs=(os.getpid(), work, items)) as pool:
        try:
            yield from pool.map(do_item, range(len(items)))
        except BrokenProcessPool:
            raise ChildProcessError(
                f"one of {number} processes died before its batch was done. "
                "Did memory run out? Free some, or use fewer processes."
            ) from None


def share(parent: int, *shared: Any) -> None:
    """Begin a forked process; `parent` is the one that waits for the results."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    end_with_parent(parent)
    gc.freeze()  # scanning shared objects would copy them
    torch.set_num_threads(1)
    SHARED[:] = shared


def do_item(number: int) -> Any:
    """Do the work of one item, in a forked process."""
    work, items = SHARED
    return work(items[number])
