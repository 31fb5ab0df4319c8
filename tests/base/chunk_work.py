"""Functions that worker processes run in the tests of chunked work, without importing pytest."""

import os
from collections.abc import Callable
from functools import partial


def add_process(numbers: list[int]) -> list[tuple[int, int]]:
    return [(number, os.getpid()) for number in numbers]


def make_adder() -> Callable[[list[int]], list[tuple[int, int]]]:
    return add_process


def fail_at(wanted: int, numbers: list[int]) -> int:
    if wanted in numbers:
        raise ValueError(f"number {wanted} is bad")
    return sum(numbers)


def make_failing(wanted: int) -> Callable[[list[int]], int]:
    return partial(fail_at, wanted)


def make_nothing() -> Callable[[list[int]], int]:
    raise ValueError("cannot be made")


def leave(numbers: list[int]) -> int:
    os._exit(3)


def make_leaving() -> Callable[[list[int]], int]:
    return leave
