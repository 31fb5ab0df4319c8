"""Work for several processes that share this one's memory: the weights, and all else that is loaded."""

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
END = -1  # sent in place of an item's number by a process that has found none left


def check_processes(processes: int, device: torch.device) -> None:
    """Check that so many processes can share what this one has loaded.

    Raises:
        ValueError: if there are none, the device is no CPU, or the system cannot fork.
    """
    if processes < 1:
        raise ValueError(f"processes: found {processes}, wanted 1 or more.")
    if processes > 1 and device.type != "cpu":
        raise ValueError(f"found {processes} processes on {device}; several share a CPU only. Wanted 1.")
    if processes > 1 and "fork" not in multiprocessing.get_all_start_methods():
        raise ValueError(f"found {processes} processes, but this system cannot fork any. Wanted 1.")


def side_by_side(
    work: Callable[[Item], Result], items: Sequence[Item], processes: int
) -> Iterator[tuple[int, Result]]:
    """Yield each item's number and what `work` returns for it, as soon as it is done.

    Processes are forked: nothing is loaded again, and only what they write to is copied. Each computes on one
    thread and takes the next item whenever it is done with one. Put the longest items first.

    Args:
        work: may be any function; what it changes is not seen here.
        items: need not be pickled, as results are.
        processes: 1 stays in this one, as does a single item.

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
            theirs.close()  # else its end would not be noticed
        while working:
            for connection in wait(working):
                assert isinstance(connection, Connection)
                try:
                    item, result = connection.recv()
                except EOFError:
                    raise ChildProcessError(
                        f"one of {number} processes died before its batch was done; wanted all to finish. "
                        "Did memory run out? Free some, or ask for fewer processes."
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
    """Do items in a forked process until none is left.

    Args:
        taken: how many have been taken, by all processes.
        results: where to send an item's number and its result, or the exception that it raised.
        parent: number of the process that waits for them.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends this process
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    end_with_parent(parent)
    gc.freeze()  # looking through shared objects would copy them
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
