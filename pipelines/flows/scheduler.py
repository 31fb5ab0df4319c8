"""Each job starts as soon as its parents have ended well and what it takes is free."""

import queue
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from pipelines.flows.resources import Resources

Name = TypeVar("Name", bound=Hashable)
PAUSE = 2.0
"""Seconds between two looks at whether the run itself is to go on."""


@dataclass(frozen=True)
class Job(Generic[Name]):
    """A piece of work: parents that must have ended well, GPUs it takes, and whether it runs elsewhere."""

    name: Name
    parents: Collection[Name]
    gpus: int = 0
    elsewhere: bool = False


class Schedule(Generic[Name]):
    """Jobs on the way.

    Attributes:
        succeeded: whether each ended job did, in the order of their ends.
    """

    def __init__(self, jobs: Mapping[Name, Job[Name]], resources: Resources) -> None:
        for job in jobs.values():
            if not job.elsewhere and resources.has_gpus and job.gpus > len(resources.gpus):
                raise ValueError(
                    f"{job.name} takes {job.gpus} GPUs, but there are {len(resources.gpus)}: it could never "
                    "start. Lower train.workers in params.yaml, or name more ids in gpus."
                )
        self.waiting = dict(jobs)
        self.resources = resources
        self.leases: dict[Name, Sequence[int] | None] = {}
        self.succeeded: dict[Name, bool] = {}
        self.ended: queue.SimpleQueue[tuple[Name, bool]] = queue.SimpleQueue()

    def run(self, start: Callable[[Name, Sequence[int]], None], look: Callable[[], None]) -> None:
        """Start jobs until none runs and none can start.

        Args:
            start: begins a job on leased GPUs and returns; `end` is to be called when the job is over.
            look: called every few seconds; what it raises ends this.
        """
        self._start_ready(start)
        while self.leases:
            try:
                self._finish(*self.ended.get(timeout=PAUSE))
            except queue.Empty:
                look()
                continue
            self._start_ready(start)

    def end(self, name: Name, succeeded: bool) -> None:
        """Tell, from any thread, that a job is over."""
        self.ended.put((name, succeeded))

    def _finish(self, name: Name, succeeded: bool) -> None:
        taken = self.leases.pop(name)
        if taken is not None:
            self.resources.give_back(taken)
        self.succeeded[name] = succeeded

    def _start_ready(self, start: Callable[[Name, Sequence[int]], None]) -> None:
        for name, job in list(self.waiting.items()):
            if all(self.succeeded.get(parent, False) for parent in job.parents):
                taken = None if job.elsewhere else self.resources.lease(job.gpus)
                if job.elsewhere or taken is not None:
                    del self.waiting[name]
                    self.leases[name] = taken
                    start(name, taken or [])
