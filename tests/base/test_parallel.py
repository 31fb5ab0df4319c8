"""Chunked work on all cores."""

import os
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from convs2s.base.parallel import cores, map_chunks


def add_process(numbers: list[int]) -> list[tuple[int, int]]:
    return [(number, os.getpid()) for number in numbers]


def leave(numbers: list[int]) -> int:
    os._exit(3)


make_adder = partial(partial, add_process)


def test_results_are_in_order_and_complete() -> None:
    """Results are written in this order, so it must be that of the items, with several processes, too."""
    results = [pair for chunk in map_chunks(make_adder, range(1003), 10, "t", workers=2) for pair in chunk]
    assert [number for number, _ in results] == list(range(1003))
    assert os.getpid() not in {process for _, process in results}


@pytest.mark.parametrize(("items", "workers"), [(20, 8), (1000, 1), (0, 8)])
def test_little_work_or_one_core_starts_no_process(items: int, workers: int) -> None:
    """Starting processes takes longer than two chunks, and does not help on one core."""
    results = [pair for chunk in map_chunks(make_adder, range(items), 10, "t", workers) for pair in chunk]
    assert results == [(number, os.getpid()) for number in range(items)]


def test_items_are_read_only_as_needed() -> None:
    """Memory stays bounded because at most two chunks per worker wait; reading must not run ahead."""
    read = 0

    def items() -> Iterator[int]:
        nonlocal read
        for number in range(10_000):
            read += 1
            yield number

    results = map_chunks(make_adder, items(), 10, "t", workers=2)
    next(results)
    assert read <= 2 * 2 * 10
    results.close()  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("make", "message"),
    [(partial(partial, bytes), r"in range\(0, 256\)"), (partial(int, "none"), "invalid literal")],
)
def test_an_error_comes_through_with_its_message(make: Any, message: str) -> None:
    """The fault may be in the data, or in a model to load; a pool's initializer would lose the message."""
    for workers in (1, 2):
        with pytest.raises(ValueError, match=message):
            list(map_chunks(make, range(300), 100, "t", workers))


def test_only_cores_that_the_process_may_use_are_counted() -> None:
    """`taskset` limits them, for a machine whose memory does not suffice for a worker on each core."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        assert cores() == 1
    finally:
        os.sched_setaffinity(0, allowed)
    assert cores() == len(allowed)


def test_a_dead_process_is_reported() -> None:
    """The system kills processes when memory runs out; waiting forever would be worse than an error."""
    with pytest.raises(ChildProcessError, match=r"one of 2 worker processes died.*memory"):
        list(map_chunks(partial(partial, leave), range(100), 10, "t", workers=2))


def test_a_machine_without_shared_memory_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A container may have none; Python says "Read-only file system", or "Function not implemented"."""

    def fail(*_: Any, **__: Any) -> None:
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr("convs2s.base.parallel.ProcessPoolExecutor", fail)
    with pytest.raises(OSError, match=r"expected a /dev/shm that .*not implemented.*taskset --cpu-list 0"):
        list(map_chunks(make_adder, range(100), 10, "t", workers=2))
