"""Batches across requests: lines that arrive together are translated together, in one thread."""

import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

import torch

from convs2s.serve.requests import Limits, Refusal

Work = Callable[[list[str]], Sequence[Any]]
"""Returns one result per line; lines with the same work share a batch."""


@dataclass(frozen=True, eq=False)
class Job:
    """A line and the future with its result."""

    work: Work
    line: str
    result: Future[Any] = field(default_factory=Future)
    arrived: float = field(default_factory=time.monotonic)


class Batcher:
    """A queue of lines and the thread that processes them, oldest first.

    Args:
        limits: of the queue and of a batch.
        threads: for PyTorch; None leaves its default.
        on_batch: called with the number of lines of each batch.
    """

    def __init__(self, limits: Limits, threads: int | None, on_batch: Callable[[int], None]) -> None:
        self.limits, self.threads, self.on_batch = limits, threads, on_batch
        self._jobs: deque[Job] = deque()
        self._clients = Counter[str]()
        self._changed = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="decoding", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Finish the waiting lines, then end the thread."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._thread.join()

    def waiting(self) -> int:
        """Return the number of waiting lines."""
        return len(self._jobs)

    def submit(self, work: Work, lines: Sequence[str], client: str) -> list[Future[Any]]:
        """Queue lines and return futures for their results. Canceled lines are dropped from the queue.

        Raises:
            Refusal: 503 if the queue is full, 429 if too many of its lines are this client's.
        """
        jobs = [Job(work, line) for line in lines]
        with self._changed:
            self._check_room(len(jobs), client)
            self._jobs.extend(jobs)
            self._clients[client] += len(jobs)
            self._changed.notify_all()
        for job in jobs:
            job.result.add_done_callback(lambda _: self._forget(client))
        return [job.result for job in jobs]

    def _check_room(self, lines: int, client: str) -> None:
        of_client, limits, soon = self._clients[client] + lines, self.limits, {"Retry-After": "1"}
        if of_client > limits.waiting_per_client:
            raise Refusal(
                429,
                f"Too many requests: {of_client} of your lines would be waiting, but the limit is "
                f"{limits.waiting_per_client}. Wait for answers before you send more.",
                soon,
            )
        if self._closed or len(self._jobs) + lines > limits.waiting:
            raise Refusal(
                503, f"The server is busy: {len(self._jobs)} lines are waiting. Try again in a second.", soon
            )

    def _forget(self, client: str) -> None:
        with self._changed:
            self._clients[client] -= 1
            if not self._clients[client]:
                del self._clients[client]

    def _run(self) -> None:
        if self.threads is not None:
            torch.set_num_threads(self.threads)
        while jobs := self._next_batch():
            live = [job for job in jobs if job.result.set_running_or_notify_cancel()]
            if live:
                self.on_batch(len(live))
                finish(live)

    def _next_batch(self) -> list[Job]:
        """Wait for lines; return the oldest and those that share its work. Empty at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._jobs or self._closed)
            if not self._jobs:
                return []
            first = self._jobs[0]
            end = first.arrived + self.limits.collect_seconds
            self._changed.wait_for(lambda: self._is_full(first.work), max(0.0, end - time.monotonic()))
            batch = [job for job in self._jobs if job.work == first.work][: self.limits.batch_lines]
            taken = set(batch)
            self._jobs = deque(job for job in self._jobs if job not in taken)
            return batch

    def _is_full(self, work: Work) -> bool:
        return self._closed or sum(job.work == work for job in self._jobs) >= self.limits.batch_lines


def finish(jobs: Sequence[Job]) -> None:
    """Process some lines; if that fails, process each line alone, so that one cannot make others fail."""
    try:
        results = jobs[0].work([job.line for job in jobs])
    except Exception as error:
        if len(jobs) == 1:
            jobs[0].result.set_exception(error)
            return
        for job in jobs:
            finish([job])
        return
    for job, result in zip(jobs, results, strict=True):
        job.result.set_result(result)
