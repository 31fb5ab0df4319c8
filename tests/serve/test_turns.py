"""Turns of requests, in virtual time: no server, no threads, no model."""

from collections.abc import Sequence

import pytest

from convs2s.serve.turns import Batch, Pause, Request, Turns

PER_CHARACTER = 0.00004
"""Seconds that a character of a batch's cost takes."""
STEP = 0.005
"""Longest time between two pauses, in seconds."""
SHORT = ["a line of thirty-three characters"]
LONG = ["a line of thirty-three characters"] * 300


def work(lines: Sequence[str], pause: Pause) -> Sequence[str]:
    raise NotImplementedError


class Simulation:
    """Processes requests that arrive at given times.

    Attributes:
        now: in seconds.
        log: the parts of each batch, in the order in which they began.
        answered: when each request was complete.
    """

    def __init__(self, arrivals: Sequence[tuple[float, Request]], batch_lines: int = 64) -> None:
        self.turns = Turns[Request](batch_lines)
        self.arrivals = sorted(arrivals, key=lambda arrival: arrival[0])
        self.now = 0.0
        self.log = list[list[tuple[Request, Sequence[int]]]]()
        self.answered = dict[Request, float]()
        while self.arrivals or self.turns.waiting:
            self.admit()
            if not self.process_next():
                self.now = self.arrivals[0][0]

    def admit(self) -> None:
        while self.arrivals and self.arrivals[0][0] <= self.now:
            self.turns.add(self.arrivals.pop(0)[1])

    def process_next(self) -> bool:
        batch = self.turns.take(self.now)
        if batch is None:
            return False
        self.log.append([(part.request, part.numbers) for part in batch.parts])
        self.process(batch)
        return True

    def process(self, batch: Batch[Request]) -> None:
        left = batch.cost * PER_CHARACTER
        while left > 0:
            step = min(STEP, left)
            left -= step
            self.now += step
            self.admit()
            while left > 0 and self.process_next():
                pass
        self.turns.end(batch, self.now)
        for part in batch.parts:
            if not part.request.parts:
                self.answered[part.request] = self.now


def seconds(request: Request) -> float:
    """Return how long a request takes if it is alone."""
    return sum(part.cost for part in request.parts) * PER_CHARACTER


@pytest.mark.parametrize("clients", [1, 2, 8])
@pytest.mark.parametrize("lines", [LONG, ["x" * 9000], LONG * 20], ids=["text", "word", "book"])
def test_a_short_request_does_not_wait_for_long_ones(lines: list[str], clients: int) -> None:
    """However many long ones there are, it waits for a step, then for as long as short ones had before."""
    shorts = [(0.003 + 0.037 * number, Request(work, SHORT)) for number in range(100)]
    longs = [(0.0, Request(work, lines, 128)) for _ in range(clients)]
    own = seconds(shorts[0][1])
    simulation = Simulation([*longs, *shorts])
    waits = [simulation.answered[request] - time for time, request in shorts]
    assert max(waits) <= STEP + own + own + 1e-6


def test_long_requests_take_turns() -> None:
    """Each has a part at a time, the longest lines first, so that lines of similar lengths are together."""
    first, second, third = (Request(work, ["x" * n for n in (3, 9, 1, 7, 5)], 2) for _ in range(3))
    simulation = Simulation([(0.0, first), (0.0, second), (0.0001, third)])
    parts = [[1, 3], [4, 0], [2]]
    assert simulation.log == [[(request, part)] for part in parts for request in (first, second, third)]


def test_a_request_waits_for_at_most_one_part_of_each_other() -> None:
    """Also if it is too long to interrupt any."""
    others = [(0.0, Request(work, LONG, 128)) for _ in range(5)]
    late = Request(work, LONG, 128)
    simulation = Simulation([*others, (0.001, late)])
    before = simulation.log[: [batch[0][0] for batch in simulation.log].index(late)]
    assert len(before) == len(others)


def test_a_stream_of_short_requests_starves_no_long_one() -> None:
    """It takes at most twice as long as alone, whatever else arrives, and a last short request."""
    long = Request(work, ["x" * 9000])
    short = seconds(Request(work, SHORT))
    arrivals = [(0.5 * short * number, Request(work, SHORT)) for number in range(2000)]
    alone = seconds(long)
    simulation = Simulation([(0.0, long), *arrivals], batch_lines=1)
    assert simulation.answered[long] <= 2 * alone + short + STEP


def test_a_long_interruption_does_not_keep_short_ones_out() -> None:
    """A page that interrupts a word of 9,000 letters uses up time of requests like it, not of a line."""
    word, page, line = Request(work, ["x" * 9000]), Request(work, LONG[:100]), Request(work, SHORT)
    arrival = 0.01 + seconds(page) + STEP
    simulation = Simulation([(0.0, word), (0.006, page), (arrival, line)])
    assert simulation.answered[page] < simulation.answered[line] < simulation.answered[word]
    assert simulation.answered[line] - arrival <= STEP + seconds(Request(work, SHORT)) + 1e-6


def test_short_requests_share_batches_and_do_not_interrupt_them() -> None:
    """Batches of several requests are what makes a busy server fast."""
    first = [Request(work, [line]) for line in ("a" * 90, "b" * 90, "c" * 90)]
    late = [Request(work, [line]) for line in "de"]
    simulation = Simulation([*((0.0, request) for request in first), *((0.006, request) for request in late)])
    assert simulation.log == [[(request, [0]) for request in batch] for batch in (first, late)]


def test_what_is_left_of_a_dropped_request_is_not_processed() -> None:
    """Its client has gone; whether it waits or a part of it is being processed makes no difference."""
    turns = Turns[Request](64)
    first, second = Request(work, LONG, 128), Request(work, LONG, 128)
    for request in (first, second):
        turns.add(request)
    batch = turns.take(0.0)
    assert batch is not None and batch.parts[0].request is first
    for request in (first, second):
        turns.drop(request)
    turns.end(batch, 1.0)
    assert turns.take(1.0) is None
