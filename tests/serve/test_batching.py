"""Batches across requests."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest
from fastapi import HTTPException

from convs2s.serve import batching
from convs2s.serve.batching import Batcher
from convs2s.serve.turns import Pause, Work


class Worker:
    """Work that waits until it is let through, and notes its batches."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.batches = list[list[str]]()

    def upper(self, lines: Sequence[str], pause: Pause) -> list[str]:
        assert self.open.wait(10)
        self.batches.append(list(lines))
        if "" in lines:
            raise ValueError("an empty line")
        return [line.upper() for line in lines]

    def lower(self, lines: Sequence[str], pause: Pause) -> list[str]:
        self.batches.append(list(lines))
        return [line.lower() for line in lines]


async def stays() -> bool:
    return False


async def leaves() -> bool:
    return True


Request = tuple[Work, list[str], Callable[[], Awaitable[bool]]]


def process(worker: Worker, requests: Sequence[Request]) -> list[Any]:
    """Return results or errors of requests that all arrive while a first one, FIRST, is processed."""

    async def run() -> list[Any]:
        batcher = Batcher(batch_lines=3, threads=1)
        first = asyncio.ensure_future(batcher.process(worker.upper, ["first"], stays))
        await asyncio.sleep(0.05)
        others = asyncio.gather(*(batcher.process(*request) for request in requests), return_exceptions=True)
        await asyncio.sleep(0.05)
        worker.open.set()
        assert await asyncio.wait_for(first, 10) == ["FIRST"]
        return await asyncio.wait_for(others, 10)

    return asyncio.run(run())


def test_requests_with_the_same_work_share_batches() -> None:
    """A batch takes the oldest request and what fits of the others; a large request is a batch of its own."""
    worker = Worker()
    results = process(worker, [
        (worker.upper, ["a", "b"], stays), (worker.lower, ["C"], stays), (worker.upper, ["d", "e"], stays),
        (worker.upper, ["f"], stays), (worker.upper, ["g"] * 4, stays),
    ])  # fmt: skip
    assert results == [["A", "B"], ["c"], ["D", "E"], ["F"], ["G"] * 4]
    assert worker.batches == [["first"], ["a", "b", "f"], ["C"], ["d", "e"], ["g"] * 4]


def test_failing_and_abandoned_requests_hold_up_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """The page drops a request when its user types on before the answer; others must get theirs."""
    monkeypatch.setattr(batching, "CHECK_SECONDS", 0.01)
    worker = Worker()
    requests = [(worker.upper, [""], stays), (worker.upper, ["a"], stays), (worker.upper, ["b"], leaves)]
    bad, good, gone = process(worker, requests)
    assert good == ["A"]
    assert isinstance(bad, ValueError)
    assert isinstance(gone, HTTPException)
    assert worker.batches == [["first"], ["", "a"], [""], ["a"]]


def test_a_canceled_request_holds_up_no_other() -> None:
    """The server's end cancels requests, whether they wait or are being processed; the queue goes on."""
    worker = Worker()

    async def run() -> list[Any]:
        batcher = Batcher(batch_lines=3, threads=1)
        processed = asyncio.ensure_future(batcher.process(worker.upper, ["a"], stays))
        await asyncio.sleep(0.05)
        waiting = [
            asyncio.ensure_future(batcher.process(work, [line], stays))
            for work, line in ((worker.upper, "b"), (worker.lower, "C"), (worker.lower, "D"))
        ]
        await asyncio.sleep(0.05)
        for request in (processed, waiting[1]):
            request.cancel()
        await asyncio.sleep(0.05)
        worker.open.set()
        return await asyncio.wait_for(asyncio.gather(processed, *waiting, return_exceptions=True), 10)

    processed, first, queued, last = asyncio.run(run())
    assert [first, last] == [["B"], ["d"]]
    assert isinstance(processed, asyncio.CancelledError) and isinstance(queued, asyncio.CancelledError)
    assert worker.batches == [["a"], ["b"], ["D"]]


@pytest.mark.parametrize(("collect_seconds", "expected"), [
    (10.0, [["a"], ["b"], ["c", "d", "e"], ["f", "g", "h"]]),
    (0.15, [["a"], ["b"], ["c", "d", "e"], ["f", "g", "h"]]),  # for each of three requests
    (0.0, [["a"], ["b"], ["c", "d", "e"], ["f"], ["g"], ["h"]]),
])  # fmt: skip
def test_only_the_clients_of_a_shared_batch_wait_for_each_other(
    monkeypatch: pytest.MonkeyPatch, collect_seconds: float, expected: list[list[str]]
) -> None:
    """A single client, such as somebody at the page, is served at once; several keep sharing batches."""
    monkeypatch.setattr(batching, "COLLECT_SECONDS", collect_seconds)
    worker = Worker()

    async def run() -> None:
        batcher = Batcher(batch_lines=10, threads=1)

        async def ask(line: str, delay: float) -> None:
            await asyncio.sleep(delay)
            await batcher.process(worker.lower, [line], stays)

        await ask("a", 0)
        await ask("b", 0)
        await asyncio.gather(*(ask(line, 0) for line in "cde"))
        await asyncio.gather(*(ask(line, delay) for line, delay in zip("fgh", (0.0, 0.1, 0.2), strict=True)))

    asyncio.run(asyncio.wait_for(run(), 5))
    assert worker.batches == expected


def test_a_client_that_comes_later_than_its_batch_is_served_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others of an earlier batch may never send another request."""
    monkeypatch.setattr(batching, "COLLECT_SECONDS", 0.1)  # for each of two requests
    worker = Worker()

    async def run() -> float:
        batcher = Batcher(batch_lines=10, threads=1)
        await asyncio.gather(*(batcher.process(worker.lower, [line], stays) for line in "ab"))
        await asyncio.sleep(0.3)
        begin = asyncio.get_running_loop().time()
        await batcher.process(worker.lower, ["c"], stays)
        return asyncio.get_running_loop().time() - begin

    assert asyncio.run(run()) < 0.1


def test_a_long_request_gets_its_results_in_the_order_of_its_lines() -> None:
    """It is processed in parts, the longest lines first; other requests have their turns in between."""
    worker = Worker()

    async def run() -> list[list[str]]:
        batcher = Batcher(batch_lines=3, threads=1)
        requests = list[asyncio.Future[list[str]]]()
        for lines in (["c", "bbb", "aa", "ddddd", "eeee"], ["f", "gg"]):
            requests.append(asyncio.ensure_future(batcher.process(worker.upper, lines, stays, part_lines=2)))
            await asyncio.sleep(0.05)
        worker.open.set()
        return await asyncio.wait_for(asyncio.gather(*requests), 10)

    assert asyncio.run(run()) == [["C", "BBB", "AA", "DDDDD", "EEEE"], ["F", "GG"]]
    assert worker.batches == [["ddddd", "eeee"], ["f", "gg"], ["bbb", "aa"], ["c"]]


def test_a_short_request_is_answered_while_a_long_one_is_processed() -> None:
    """Also if it fails, which is not the long one's fault."""
    worker = Worker()
    begun, answered = threading.Event(), threading.Event()

    def work(lines: Sequence[str], pause: Pause) -> list[str]:
        begun.set()
        while not answered.wait(0.001):
            pause()
        return [line.upper() for line in lines]

    async def run() -> tuple[list[str], list[str]]:
        worker.open.set()
        batcher = Batcher(batch_lines=3, threads=1)
        long = asyncio.ensure_future(batcher.process(work, ["a" * 1000], stays))
        await asyncio.to_thread(begun.wait)
        short = await batcher.process(worker.upper, ["b"], stays)
        with pytest.raises(ValueError, match="an empty line"):
            await batcher.process(worker.upper, [""], stays)
        answered.set()
        return short, await long

    short, long = asyncio.run(asyncio.wait_for(run(), 10))
    assert (short, long) == (["B"], ["A" * 1000])


def test_work_ends_when_its_client_has_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A long request of which nobody wants the answer must not keep the thread."""
    monkeypatch.setattr(batching, "CHECK_SECONDS", 0.01)
    worker = Worker()

    def work(lines: Sequence[str], pause: Pause) -> list[str]:
        while True:
            pause()

    async def run() -> list[str]:
        batcher = Batcher(batch_lines=3, threads=1)
        with pytest.raises(HTTPException):
            await batcher.process(work, ["a"], leaves)
        return await batcher.process(worker.lower, ["B"], stays)

    assert asyncio.run(asyncio.wait_for(run(), 10)) == ["b"]
