"""Batches across requests, and the queue that feeds them."""

import threading
from collections.abc import Iterator

import pytest

from convs2s.serve.batching import Batcher
from convs2s.serve.requests import Limits, Refusal


class Gate:
    """Work that blocks until it is let through, so that lines queue up behind it."""

    def __init__(self) -> None:
        self.open, self.entered = threading.Event(), threading.Event()

    def work(self, lines: list[str]) -> list[str]:
        self.entered.set()
        self.open.wait(10)
        return lines


def upper(lines: list[str]) -> list[str]:
    return [line.upper() for line in lines]


def lower(lines: list[str]) -> list[str]:
    if "" in lines:
        raise ValueError("an empty line")
    return [line.lower() for line in lines]


@pytest.fixture
def sizes() -> list[int]:
    return []


@pytest.fixture
def batcher(sizes: list[int]) -> Iterator[Batcher]:
    limits = Limits(waiting=6, waiting_per_client=5, batch_lines=3, collect_seconds=0.001)
    batcher = Batcher(limits, 1, sizes.append)
    batcher.start()
    yield batcher
    batcher.stop()


@pytest.fixture
def gate(batcher: Batcher) -> Iterator[Gate]:
    """Keep the worker thread busy."""
    gate = Gate()
    batcher.submit(gate.work, ["gate"], "gate")
    assert gate.entered.wait(10)
    yield gate
    gate.open.set()


def test_lines_of_several_clients_share_batches(batcher: Batcher, gate: Gate, sizes: list[int]) -> None:
    """A batch holds lines of one kind of work, up to the limit, oldest first."""
    first = batcher.submit(upper, ["a", "b"], "1")
    other = batcher.submit(lower, ["C"], "2")
    second = batcher.submit(upper, ["d", "e"], "3")
    gate.open.set()
    assert [one.result(10) for one in [*first, *other, *second]] == ["A", "B", "c", "D", "E"]
    assert sizes == [1, 3, 1, 1]


def test_failing_and_canceled_lines_hold_up_no_other(batcher: Batcher, gate: Gate, sizes: list[int]) -> None:
    """The page cancels requests when its user types on before the answer; others must get theirs."""
    bad, good, canceled = batcher.submit(lower, ["", "A", "B"], "1")
    assert canceled.cancel()
    gate.open.set()
    assert good.result(10) == "a"
    with pytest.raises(ValueError, match="an empty line"):
        bad.result(10)
    assert sizes == [1, 2]


def test_the_queue_has_limits(batcher: Batcher, gate: Gate) -> None:
    """There is one limit in total and one per client; answered and canceled lines do not count."""
    batcher.submit(upper, ["a"] * 4, "1")
    with pytest.raises(Refusal) as greedy:
        batcher.submit(upper, ["a"] * 2, "1")
    assert greedy.value.status == 429
    with pytest.raises(Refusal) as full:
        batcher.submit(upper, ["a"] * 3, "2")
    assert full.value.status == 503
    last = batcher.submit(upper, ["a"] * 2, "2")
    gate.open.set()
    assert last[-1].result(10) == "A"
    assert batcher.waiting() == 0
    assert batcher.submit(upper, ["a"] * 5, "1")[-1].result(10) == "A"


def test_stopping_finishes_waiting_lines_and_takes_no_more(batcher: Batcher, gate: Gate) -> None:
    """No client must be left without an answer."""
    waiting = batcher.submit(upper, ["a"], "1")
    stopping = threading.Thread(target=batcher.stop)
    stopping.start()
    gate.open.set()
    stopping.join(10)
    assert waiting[0].result(0) == "A"
    with pytest.raises(Refusal, match="busy"):
        batcher.submit(upper, ["a"], "1")
