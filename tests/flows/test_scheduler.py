"""The scheduler: order, leases, and what a failure leaves undone."""

import threading
import time
from collections.abc import Sequence

import pytest

from pipelines.flows.resources import Resources
from pipelines.flows.scheduler import Job, Schedule

DIAMOND = {
    "data": Job("data", ()),
    "train@1": Job("train@1", ("data",), gpus=1),
    "train@2": Job("train@2", ("data",), gpus=1),
    "evaluate": Job("evaluate", ("train@1", "train@2")),
}


class Player:
    """Ends each job after a while, from a thread of its own, and notes who ran beside whom on which GPUs."""

    def __init__(self, schedule: Schedule[str], failing: Sequence[str] = ()) -> None:
        self.schedule = schedule
        self.failing = failing
        self.running: dict[str, Sequence[int]] = {}
        self.started: list[str] = []
        self.beside: set[frozenset[str]] = set()
        self.gpus: dict[str, Sequence[int]] = {}

    def start(self, name: str, gpus: Sequence[int]) -> None:
        busy = [gpu for held in self.running.values() for gpu in held]
        assert not set(busy) & set(gpus), "a GPU was leased twice"
        self.running[name] = gpus
        self.started.append(name)
        self.gpus[name] = gpus
        self.beside |= {frozenset({name, other}) for other in self.running if other != name}
        threading.Timer(0.05, self.end, [name]).start()

    def end(self, name: str) -> None:
        del self.running[name]
        self.schedule.end(name, name not in self.failing)


def play(jobs: dict[str, Job[str]], resources: Resources, failing: Sequence[str] = ()) -> Player:
    schedule = Schedule(jobs, resources)
    player = Player(schedule, failing)
    schedule.run(player.start, lambda: None)
    assert player.running == {}
    return player


def test_each_starts_after_its_parents_and_trainings_side_by_side() -> None:
    """Seeds at the same time are what the flow is for."""
    player = play(DIAMOND, Resources([4, 7], places=1))
    assert player.started == ["data", "train@1", "train@2", "evaluate"]
    assert frozenset({"train@1", "train@2"}) in player.beside
    assert player.gpus == {"data": [], "train@1": [4], "train@2": [7], "evaluate": []}


def test_with_one_gpu_trainings_wait_for_each_other() -> None:
    """Two on one GPU would run out of its memory."""
    player = play(DIAMOND, Resources([3], places=4))
    assert frozenset({"train@1", "train@2"}) not in player.beside
    assert player.gpus["train@1"] == player.gpus["train@2"] == [3]


def test_without_gpus_trainings_take_places_of_the_cpu() -> None:
    """The number of parallel stages bounds them then."""
    both, one = (play(DIAMOND, Resources([], places=n)) for n in (2, 1))
    assert frozenset({"train@1", "train@2"}) in both.beside
    assert one.beside == set()
    assert both.gpus["train@1"] == []


def test_a_training_of_two_gpus_takes_two() -> None:
    """`train.workers` of them."""
    jobs = {"a": Job("a", (), gpus=2), "b": Job("b", (), gpus=2), "c": Job("c", (), gpus=1)}
    player = play(jobs, Resources([0, 1, 2], places=1))
    assert player.gpus["a"] == [0, 1]
    assert player.gpus["c"] == [2]
    assert sorted(player.started) == ["a", "b", "c"]


def test_after_a_failure_all_that_does_not_need_it_still_runs() -> None:
    """One seed that fails must not cost the others."""
    jobs = DIAMOND | {"align": Job("align", ("data",))}
    player = play(jobs, Resources([0], places=1), failing=["train@1"])
    assert set(player.started) == {"data", "train@1", "train@2", "align"}
    assert player.schedule.succeeded == {"data": True, "train@1": False, "train@2": True, "align": True}


def test_a_job_elsewhere_needs_nothing_here() -> None:
    """Remote workers have GPUs of their own."""
    jobs = {name: Job(name, (), gpus=8, elsewhere=True) for name in ("a", "b", "c")}
    player = play(jobs, Resources([], places=1))
    assert player.beside == {frozenset(pair) for pair in (("a", "b"), ("a", "c"), ("b", "c"))}


def test_a_job_that_could_never_start_is_refused() -> None:
    """It would wait for ever."""
    with pytest.raises(
        ValueError, match=r"a takes 2 GPUs, but there are 1: it could never start\. Lower train"
    ):
        Schedule({"a": Job("a", (), gpus=2)}, Resources([0], places=1))


def test_it_looks_about_while_it_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cancellation must be seen during a training of days; what the look raises ends the run."""
    monkeypatch.setattr("pipelines.flows.scheduler.PAUSE", 0.01)
    schedule = Schedule({"a": Job("a", ())}, Resources([], places=1))
    begin = time.monotonic()

    def look() -> None:
        if time.monotonic() - begin > 0.1:
            raise RuntimeError("cancelled")

    with pytest.raises(RuntimeError, match="cancelled"):
        schedule.run(lambda _name, _gpus: None, look)
