"""Parallel work in processes that share this one's memory: the weights and everything else loaded."""

import gc
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from typing import Any, TypeVar

import torch

from convs2s.processes import end_with_parent

Item = TypeVar("Item")
Result = TypeVar("Result")
END = -1  # sent instead of an item's number by a process that finds no item left


def check_processes(processes: int, device: torch.device) -> None:
    """Check that this many processes can share what this one has loaded.

    Raises:
        ValueError: if there are fewer than 1, the device is not a CPU, or the system cannot fork.
    """
    if processes < 1:
        raise ValueError(f"processes: expected 1 or more, found {processes}.")
    if processes > 1 and device.type != "cpu":
        raise ValueError(
            f"processes: expected 1 on {device}, as only a CPU can be shared; found {processes}."
        )
    if processes > 1 and "fork" not in multiprocessing.get_all_start_methods():
        raise ValueError(f"processes: expected 1, as this system cannot fork; found {processes}.")


def run_in_processes(
    work: Callable[[Item], Result], items: Sequence[Item], processes: int
) -> Iterator[tuple[int, Result]]:
    """Yield each item's number and what `work` returns for it, as soon as it is done.

    Processes are forked: nothing is loaded again, and memory is copied only when written to. Each process
    uses one thread and takes the next item when it finishes one. Put the longest items first.

    Args:
        work: any function; its side effects are lost.
        items: need not be picklable, but results must be.
        processes: 1 works in this process, as does a single item.

    Raises:
        ChildProcessError: if a process dies.
        Exception: whatever `work` raises.
    """
    number = min(processes, len(items))
    if number < 2:
        yield from enumerate(map(work, items))
        return
    context = multiprocessing.get_context("fork")
    taken = context.Value("q", 0)
    family = []
    working: list[Connection] = []
    try:
        for _ in range(number):
            ours, theirs = context.Pipe(duplex=False)
            working.append(ours)
            family.append(context.Process(target=take, args=(work, items, taken, theirs, os.getpid())))
            family[-1].start()
            theirs.close()  # otherwise the end of the process would go unnoticed
        while working:
            for connection in wait(working):
                assert isinstance(connection, Connection)
                try:
                    item, result = connection.recv()
                except EOFError:
                    raise ChildProcessError(
                        f"one of {number} processes died before its batch was done. "
                        "Did memory run out? Free some, or use fewer processes."
                    ) from None
                if isinstance(result, Exception):
                    raise result
                if item == END:
                    working.remove(connection)
                else:
                    yield item, result
    finally:
        for process in family:
            process.kill()
            process.join()
        for connection in working:
            connection.close()


def take(
    work: Callable[[Item], Result], items: Sequence[Item], taken: Any, results: Connection, parent: int
) -> None:
    """Process items in a forked process until none is left.

    Args:
        work: as in `run_in_processes`.
        items: as in `run_in_processes`.
        taken: number of items taken so far, by all processes.
        results: where to send an item's number and its result, or the exception that it raised.
        parent: id of the process that waits for the results.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends this process
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    end_with_parent(parent)
    gc.freeze()  # scanning shared objects would copy them
    torch.set_num_threads(1)
    while True:
        with taken.get_lock():
            item, taken.value = taken.value, taken.value + 1
        if item >= len(items):
            results.send((END, None))
            return
        try:
            result: Result | Exception = work(items[item])
        except Exception as error:  # raised again in the parent
            result = error
        results.send((item, result))
