"""Loops that a team of threads shares."""

import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from convs2s.base.compilation import compiled
from convs2s.engine import team

THREADS = Path("/proc/self/task")
pytestmark = pytest.mark.skipif(not team.start_of_team(), reason="PyTorch without OpenMP")


@compiled()
def count(numbers, amount, start, stop):  # type: ignore[no-untyped-def]
    for i in range(start, stop):
        numbers[i] += amount


@compiled()
def fail(numbers, start, stop):  # type: ignore[no-untyped-def]
    for i in range(start, stop):
        if i == 5:
            raise ValueError
        numbers[i] += 1


@compiled()
def wait_for_all(arrived, start, stop):  # type: ignore[no-untyped-def]
    for i in range(start, stop):
        for _ in range(10**9):
            arrived[i] += 1
            if arrived.min() > 0:
                break
        else:
            raise ValueError


@pytest.fixture
def three_threads() -> Iterator[None]:
    """PyTorch with three threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    torch.randn(300, 300) @ torch.randn(300, 300)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("three_threads")
@pytest.mark.parametrize("threads", [2, 3, 5])
def test_each_item_is_passed_once(threads: int) -> None:
    """Whatever the number of shares, and in any thread of Python's."""

    def look() -> None:
        for items in (2, 3, 7, 1000):
            for shares in range(2, min(threads, items) + 1):
                numbers = np.zeros(items)
                for _ in range(20):
                    team.share(count, items, shares, threads, numbers, 2.0)
                assert (numbers == 40.0).all(), (items, shares)
                done.append(items)

    done = list[int]()
    look()
    others = [threading.Thread(target=look) for _ in range(2)]
    for other in others:
        other.start()
    for other in others:
        other.join()
    assert len(done) == 3 * sum(min(threads, items) - 1 for items in (2, 3, 7, 1000))


@pytest.mark.usefixtures("three_threads")
def test_shares_run_at_the_same_time() -> None:
    """Each of these waits for the others."""
    arrived = np.zeros(3, np.int64)
    team.share(wait_for_all, 3, 3, 3, arrived)
    assert arrived.min() > 0


@pytest.mark.usefixtures("three_threads")
def test_a_failure_in_any_thread_is_an_error() -> None:
    """Otherwise a loop without memory would leave numbers that mean nothing."""
    with pytest.raises(MemoryError, match="fail"):
        team.share(fail, 9, 3, 3, np.zeros(9))


@pytest.mark.skipif(not THREADS.is_dir(), reason="Linux lists threads there")
def test_it_starts_no_threads_beside_those_of_pytorch() -> None:
    """They would compete with these for the cores."""

    def look() -> None:
        torch.set_num_threads(3)
        for shares in (3, 2, 3):
            torch.randn(300, 300) @ torch.randn(300, 300)
            seen.append({path.name for path in THREADS.iterdir()})
            team.share(count, 100, shares, torch.get_num_threads(), np.zeros(100), 1.0)
        seen.append({path.name for path in THREADS.iterdir()})

    seen = list[set[str]]()
    other = threading.Thread(target=look)  # each has threads of its own for PyTorch's operations
    other.start()
    other.join()
    assert all(threads == seen[0] for threads in seen)
    assert len(seen) == 4
