"""Batches across requests: lines that arrive together are translated together, in one thread."""

import asyncio
import math
import threading
import time
from asyncio import get_running_loop
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any

import torch
from fastapi import HTTPException

from convs2s.serve.turns import Part, Request, Turns, Work

COLLECT_SECONDS = 0.001
"""How long after a batch the server waits for its clients' next requests, for each request of the batch.

The event loop takes about 0.7 ms to write an answer and to read a client's next request.
"""
CHECK_SECONDS = 0.5
"""How often the server looks whether a client has gone that waits for its answer."""


@dataclass(eq=False)
class QueuedRequest(Request):
    """The lines of a request and the future with their results.

    Attributes:
        found: results of the parts that are done, by number of the line.
    """

    results: asyncio.Future[list[Any]] = field(kw_only=True)
    found: dict[int, Any] = field(default_factory=dict)

    def add(self, part: Part["QueuedRequest"], results: Sequence[Any]) -> None:
        """Add the results of a part; the last one completes the request."""
        self.found.update(zip(part.numbers, results, strict=True))
        if len(self.found) == len(self.lines) and not self.results.done():
            self.results.set_result([self.found[number] for number in range(len(self.lines))])

    def fail(self, error: Exception) -> None:
        """Give the request its error, unless nobody waits for it any more."""
        if not self.results.done():
            self.results.set_exception(error)


class Dropped(Exception):
    """Ends work for which nobody waits any more."""


class Batcher:
    """A thread that processes requests in the order of `Turns`.

    Args:
        batch_lines: lines translated at once, of several requests; one with more has batches of its own.
        threads: for PyTorch; None leaves its default.
    """

    def __init__(self, batch_lines: int, threads: int | None) -> None:
        set_threads = None if threads is None else partial(torch.set_num_threads, threads)
        self._thread = ThreadPoolExecutor(1, "decoding", set_threads)
        self._turns = Turns[QueuedRequest](batch_lines)  # and what follows, only with the lock of:
        self._arrived = threading.Condition()
        self._is_idle = True
        self._last_requests = 0  # of the last batch
        self._last_end = -math.inf  # of the last batch

    @property
    def is_working(self) -> bool:
        """Whether the thread is processing a batch, which nothing can stop."""
        return bool(self._turns.running)

    async def process(
        self,
        work: Work,
        lines: Sequence[str],
        is_abandoned: Callable[[], Awaitable[bool]],
        part_lines: int | None = None,
    ) -> list[Any]:
        """Return the results of `work` on the lines of a request, which wait for their turn.

        Args:
            is_abandoned: returns whether the client has left; the rest of the request is then dropped.
            part_lines: number of lines per turn; None for all.
        """
        job = QueuedRequest(work, lines, part_lines, results=get_running_loop().create_future())
        with self._arrived:
            self._turns.add(job)
            if self._is_idle:
                self._is_idle = False
                # Requests that have arrived at the same time come first, and share its batch.
                get_running_loop().call_soon(self._thread.submit, self._run)
            elif len(self._turns.waiting) >= self._last_requests:
                self._arrived.notify()
        try:
            while not (await asyncio.wait([job.results], timeout=CHECK_SECONDS))[0]:
                if await is_abandoned():
                    raise HTTPException(499, "The client has closed the connection.")
            return job.results.result()
        finally:
            job.results.cancel()
            with self._arrived:
                self._turns.drop(job)

    def _run(self) -> None:
        """Process requests until none waits."""
        self._collect()
        while self._process_next():
            pass

    def _collect(self) -> None:
        """Wait until there are as many requests as in the last batch, but not long after its end.

        Its clients probably send their next requests now. A single client, or one that comes later, does not
        wait.
        """
        with self._arrived:
            self._arrived.wait_for(
                lambda: len(self._turns.waiting) >= self._last_requests,
                self._last_end + COLLECT_SECONDS * self._last_requests - time.monotonic(),
            )

    def _process_next(self) -> bool:
        """Process the next batch if there is one; return whether others wait."""
        outcomes = list[Callable[[], object]]()
        with self._arrived:
            batch = self._turns.take(time.monotonic())
        if batch is not None:
            outcomes = self._process(batch.parts)
        with self._arrived:
            if batch is not None:
                self._last_requests, self._last_end = len(batch.parts), time.monotonic()
                self._turns.end(batch, self._last_end)
            self._is_idle = not self._turns.running and not self._turns.waiting
            goes_on = batch is not None and not self._is_idle
        # The clients' next requests find the thread as it is now.
        for outcome in outcomes:
            outcome()
        return goes_on

    def _pause(self, parts: Sequence[Part[QueuedRequest]]) -> None:
        """Let others interrupt work on these parts; end it if nobody waits for them any more."""
        while self._turns.waiting and self._process_next():
            pass
        if all(part.request.results.done() for part in parts):
            raise Dropped

    def _process(self, parts: Sequence[Part[QueuedRequest]]) -> list[Callable[[], object]]:
        """Process parts; if that fails, each of them alone, so that one cannot make others fail.

        Returns:
            Calls that give the requests their results or errors.
        """
        lines = [line for part in parts for line in part.lines]
        in_loop = parts[0].request.results.get_loop().call_soon_threadsafe
        try:
            results = parts[0].request.work(lines, partial(self._pause, parts))
        except Dropped:
            return []
        except Exception as error:
            if len(parts) == 1:
                return [partial(in_loop, parts[0].request.fail, error)]
            return [call for part in parts for call in self._process([part])]
        return [partial(in_loop, deliver, parts, results)]


def deliver(parts: Sequence[Part[QueuedRequest]], results: Sequence[Any]) -> None:
    """Give requests the results of their parts."""
    following = iter(results)
    for part in parts:
        part.request.add(part, list(islice(following, len(part.numbers))))
