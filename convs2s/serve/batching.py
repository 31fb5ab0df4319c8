"""Batches across requests: lines that arrive together are translated together, in one thread."""

import asyncio
import math
from asyncio import get_running_loop
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

import torch
from fastapi import HTTPException

COLLECT_SECONDS = 0.004
"""How long after a batch the server waits for its clients' next requests, to translate them together."""

Work = Callable[[list[str]], Sequence[Any]]
"""Returns one result per line; requests with the same work share a batch."""


@dataclass(frozen=True, eq=False)
class QueuedRequest:
    """The lines of a request and the future with their results."""

    work: Work
    lines: Sequence[str]
    is_abandoned: Callable[[], Awaitable[bool]]
    results: asyncio.Future[list[Any]]

    def end(self, outcome: list[Any] | Exception) -> None:
        """Give the request its results or its error, unless the server's end has canceled it."""
        if self.results.done():
            return
        if isinstance(outcome, Exception):
            self.results.set_exception(outcome)
        else:
            self.results.set_result(outcome)


class Batcher:
    """A queue of requests and the thread that processes them, oldest first.

    Args:
        batch_lines: lines translated at once; a request with more is a batch of its own.
        threads: for PyTorch; None leaves its default.
    """

    def __init__(self, batch_lines: int, threads: int | None) -> None:
        self.batch_lines = batch_lines
        self._jobs: list[QueuedRequest] = []
        self._arrived = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        set_threads = None if threads is None else partial(torch.set_num_threads, threads)
        self._thread = ThreadPoolExecutor(1, "decoding", set_threads)
        self._work: Future[Sequence[Any]] | None = None
        self._last_requests = 0  # of the last batch
        self._last_end = -math.inf  # of the last batch, by the event loop's clock

    @property
    def is_working(self) -> bool:
        """Whether the thread is processing a batch, which nothing can interrupt."""
        return self._work is not None and self._work.running()

    async def process(
        self, work: Work, lines: Sequence[str], is_abandoned: Callable[[], Awaitable[bool]]
    ) -> list[Any]:
        """Return the results of `work` on the lines of a request, which wait for their turn.

        Args:
            is_abandoned: tells, when it is their turn, whether the client has gone; they are then dropped.
        """
        job = QueuedRequest(work, lines, is_abandoned, get_running_loop().create_future())
        self._jobs.append(job)
        self._arrived.set()
        if self._task is None:  # there is no event loop before the first request
            self._task = asyncio.create_task(self._run())
        return await job.results

    async def _run(self) -> None:
        """Process requests until the event loop ends."""
        while True:
            if not self._jobs:
                self._arrived.clear()
                await self._arrived.wait()
                await self._collect()
            batch = []
            for job in self._next_batch():
                if await job.is_abandoned():
                    job.end(HTTPException(499, "The client has closed the connection."))
                elif not job.results.done():
                    batch.append(job)
            if batch:
                await self._finish(batch)
            self._last_requests, self._last_end = len(batch), get_running_loop().time()

    async def _collect(self) -> None:
        """Wait until there are as many requests as in the last batch, but not long after its end.

        Its clients probably send their next requests now. A single client, or one that comes later, does not
        wait.
        """
        try:
            async with asyncio.timeout_at(self._last_end + COLLECT_SECONDS):
                while len(self._jobs) < self._last_requests:
                    self._arrived.clear()
                    await self._arrived.wait()
        except TimeoutError:
            return

    def _next_batch(self) -> list[QueuedRequest]:
        """Take the oldest request from the queue, and those that share its work as far as they fit."""
        batch = list[QueuedRequest]()
        waiting = list[QueuedRequest]()
        lines = 0  # of the batch
        for job in self._jobs:
            if not batch or (job.work == batch[0].work and lines + len(job.lines) <= self.batch_lines):
                batch.append(job)
                lines += len(job.lines)
            else:
                waiting.append(job)
        self._jobs = waiting
        return batch

    async def _finish(self, batch: Sequence[QueuedRequest]) -> None:
        """Process requests; if that fails, each of them alone, so that one cannot make others fail."""
        lines = [line for job in batch for line in job.lines]
        try:
            self._work = self._thread.submit(batch[0].work, lines)
            done = await asyncio.wrap_future(self._work)
        except Exception as error:
            if len(batch) == 1:
                batch[0].end(error)
                return
            for job in batch:
                await self._finish([job])
            return
        results = iter(done)
        for job in batch:
            job.end(list(islice(results, len(job.lines))))
