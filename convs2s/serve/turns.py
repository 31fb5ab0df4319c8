"""Which lines are processed next: requests take turns, and cheap ones interrupt costly ones."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

CHEAPER = 2
"""How many times as costly a batch must be to be interrupted."""
BRIEF = 400
"""Least cost of a batch that is interrupted, in characters."""
LONG = 2000
"""Least cost of a request that shares no batches, in characters; shared batches are not interrupted."""
STEPS = 5
"""What a search costs for each character of its longest line, however few other lines it has."""

Pause = Callable[[], None]
Work = Callable[[Sequence[str], Pause], Sequence[Any]]
"""Returns one result per line. It calls its second argument often: others may be processed meanwhile."""

Kind = TypeVar("Kind", bound="Request")


@dataclass(eq=False)
class Part(Generic[Kind]):
    """Lines of a request that are processed at once.

    Attributes:
        numbers: of the lines, from 0.
        cost: about how long they take, in characters, so that it is known before anything is done.
    """

    request: Kind
    numbers: Sequence[int]

    def __post_init__(self) -> None:
        lengths = [len(line) for line in self.lines]
        self.cost = sum(lengths) + STEPS * max(lengths, default=0)

    @property
    def lines(self) -> list[str]:
        """The lines."""
        return [self.request.lines[number] for number in self.numbers]


@dataclass(eq=False)
class Request:
    """Lines to process, all with the same work.

    Attributes:
        part_lines: number of lines that are processed at once; None for all.
        parts: that wait, in order; the longest lines come first. At least one at the beginning.
        can_share: whether it is short enough to share a batch with others.
    """

    work: Work
    lines: Sequence[str]
    part_lines: int | None = None
    parts: deque[Part[Any]] = field(init=False)
    can_share: bool = field(init=False)

    def __post_init__(self) -> None:
        order = list(range(len(self.lines)))
        size = self.part_lines or len(order)
        if len(order) > size:
            order.sort(key=lambda number: -len(self.lines[number]))
        starts = range(0, len(order), size) if order else [0]
        self.parts = deque(Part(self, order[start : start + size]) for start in starts)
        self.can_share = len(self.parts) == 1 and self.parts[0].cost < LONG


@dataclass(eq=False)
class Batch(Generic[Kind]):
    """Parts that are processed together.

    Attributes:
        began: when, in seconds.
        interruptions: cost and seconds of each batch that has interrupted it.
    """

    parts: list[Part[Kind]]
    began: float
    interruptions: list[tuple[int, float]] = field(default_factory=list)

    @property
    def cost(self) -> int:
        """About how long it takes, in characters."""
        return sum(part.cost for part in self.parts)

    def gives_way(self, part: Part[Kind], now: float) -> bool:
        """Return whether a part may interrupt this batch now."""
        if len(self.parts) > 1 or self.cost < max(BRIEF, CHEAPER * part.cost):
            return False
        own = now - self.began - sum(seconds for _, seconds in self.interruptions)
        given = sum(seconds for cost, seconds in self.interruptions if cost <= part.cost)
        return given <= own


class Turns(Generic[Kind]):
    """The order in which requests are processed.

    - Requests take turns, in the order of their arrival; in each, a part of the request is processed. So one
      waits for at most a part of each other.
    - Short requests with the same work share a batch, as far as they fit.
    - A batch of a single request is interrupted by parts that are `CHEAPER` times as cheap, except while
      those that cost no more than they do have had more time than the batch itself. So a short request does
      not wait for a long one, and a stream of short ones makes a long one take at most twice as long.

    Times are in seconds, by any clock.

    Args:
        batch_lines: of a batch of several requests.

    Attributes:
        waiting: requests, the next first.
        running: batches; each interrupts the one before.
    """

    def __init__(self, batch_lines: int) -> None:
        self.batch_lines = batch_lines
        self.waiting: list[Kind] = []
        self.running: list[Batch[Kind]] = []

    def add(self, request: Kind) -> None:
        """Let a request wait for its turn."""
        self.waiting.append(request)

    def take(self, now: float) -> Batch[Kind] | None:
        """Begin the next batch, if there is one that need not wait for the end of another."""
        ready = self.waiting
        if self.running:
            ready = [r for r in self.waiting if self.running[-1].gives_way(r.parts[0], now)]
        if not ready:
            return None
        first, *others = ready
        chosen = [first]
        lines = len(first.lines)
        for request in others:
            fits = lines + len(request.lines) <= self.batch_lines
            if fits and first.can_share and request.can_share and request.work == first.work:
                chosen.append(request)
                lines += len(request.lines)
        self.waiting = [request for request in self.waiting if request not in chosen]
        batch = Batch([request.parts.popleft() for request in chosen], now)
        self.running.append(batch)
        return batch

    def end(self, batch: Batch[Kind], now: float) -> None:
        """End the batch that began last; what is left of its requests waits for the next turn."""
        assert batch is self.running.pop()
        if self.running:
            self.running[-1].interruptions.append((batch.cost, now - batch.began))
        self.waiting += [part.request for part in batch.parts if part.request.parts]

    def drop(self, request: Kind) -> None:
        """Drop what is left of a request."""
        request.parts.clear()
        if request in self.waiting:
            self.waiting.remove(request)
