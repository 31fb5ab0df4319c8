"""Code shared by the benchmarks."""

from functools import partial

import pytest
import torch

from benchmarks import machine

CPU = torch.device("cpu")


def test_a_speed_is_units_per_second(monkeypatch: pytest.MonkeyPatch) -> None:
    """By hand: 12 units in 3 seconds of wall time; 6 seconds of processor time on 2 threads are 3 each."""
    clock, processor = iter([10.0, 13.0]), iter([1.0, 7.0])
    monkeypatch.setattr(machine.time, "perf_counter", lambda: next(clock))
    monkeypatch.setattr(machine.time, "process_time", lambda: next(processor))
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    assert machine.measure(lambda: 12.0, CPU) == machine.Speed(4.0, 4.0)


def test_variants_take_turns_after_a_warm_up() -> None:
    """Load from other programs comes and goes, so it then affects all variants alike."""
    order: list[str] = []

    def work(name: str) -> float:
        order.append(name)
        return 1.0

    speeds = machine.in_turns({name: partial(work, name) for name in "ab"}, 2, CPU)
    assert order == ["a", "b"] * 3
    assert {name: len(found) for name, found in speeds.items()} == {"a": 2, "b": 2}
