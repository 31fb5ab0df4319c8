"""Processes that share this process's memory."""

import multiprocessing
import os
import signal
import time
from collections.abc import Callable

import psutil
import pytest
import torch

from convs2s.decode.parallel import run_in_processes


def children() -> set[psutil.Process]:
    return set(psutil.Process().children())


def test_each_item_is_done_once_by_one_of_the_processes() -> None:
    """Work and items need not be picklable; results come in the order of their items."""
    items: list[Callable[[], int]] = [lambda i=i: i * i for i in range(20)]  # type: ignore[misc]
    meeting = multiprocessing.get_context("fork").Barrier(3)

    def work(item: Callable[[], int]) -> tuple[int, int, int]:
        if item in items[:3]:
            meeting.wait(60)
        return item(), os.getpid(), torch.get_num_threads()

    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        done = list(run_in_processes(work, items, 3))
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    assert [result for result, _, _ in done] == [i * i for i in range(20)]
    others = {process for _, process, _ in done}
    assert len(others) == 3
    assert os.getpid() not in others
    assert {threads for _, _, threads in done} == {1}


@pytest.mark.parametrize(("items", "processes"), [(1, 4), (5, 1), (0, 4)])
def test_a_single_item_or_process_starts_none(items: int, processes: int) -> None:
    """Starting a process takes longer than the translation of a line that somebody has typed."""
    found = list(run_in_processes(lambda item: (item, os.getpid()), range(items), processes))
    assert found == [(i, os.getpid()) for i in range(items)]


def fail() -> None:
    raise ValueError("item 1 is bad")


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize(
    ("end", "error", "message"),
    [
        (fail, ValueError, "^item 1 is bad$"),
        (die, ChildProcessError, r"one of 2 processes died .*memory.*fewer processes"),
    ],
)
def test_the_first_error_comes_through_and_ends_all(
    end: Callable[[], None], error: type[Exception], message: str
) -> None:
    """Only items that were begun or are next are done; the system kills when memory runs out."""
    begun = multiprocessing.get_context("fork").Value("i")

    def work(item: int) -> None:
        with begun:
            begun.value += 1
        if item == 1:
            end()
        time.sleep(0.05)

    before = children()
    with pytest.raises(error, match=message):
        list(run_in_processes(work, range(40), 2))
    assert children() <= before
    assert begun.value < 20
