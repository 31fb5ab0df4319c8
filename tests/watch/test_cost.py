"""The cost of a training survives interruptions, separately from its outputs."""

import json
from pathlib import Path
from typing import Any

import pytest

from convs2s.watch import cost
from convs2s.watch.cost import Meter

CPU = {"device": "A CPU", "unit": "CPU core", "count": 2}


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, in seconds, that tests set."""
    now = [100.0]
    monkeypatch.setattr(cost.time, "perf_counter", lambda: now[0])
    return now


def saved(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text()))


def test_seconds_add_up_over_interruptions(tmp_path: Path, clock: list[float]) -> None:
    """Each session counts up to its last checkpoint, with the hardware that it ran on."""
    path = tmp_path / "cost.json"
    first = Meter(path, CPU, updates=0)
    for clock[0], updates in ((110.0, 50), (125.0, 80)):
        first.count(600, 8.0)
        first.save(updates, [50, 80])
    first.count(1000, 4.0)
    clock[0] = 130.0  # killed, five seconds after its checkpoint
    second = Meter(path, {**CPU, "count": 6}, updates=80)
    clock[0] = 137.5
    second.count(300, 4.0)
    second.save(100, [])
    second.finish(100, tmp_path / "costs" / "model.json")
    counts: list[dict[str, object]] = [
        {"first": 0, "last": 80, "seconds": 25.0, "target_tokens": 1200, "training_seconds": 16.0},
        {"first": 80, "last": 100, "seconds": 7.5, "target_tokens": 300, "training_seconds": 4.0},
    ]
    expected = [CPU | counts[0], CPU | {"count": 6} | counts[1]]
    assert json.loads((tmp_path / "costs" / "model.json").read_text()) == expected


def test_what_came_after_a_checkpoint_is_not_counted_on_resuming_from_it(
    tmp_path: Path, clock: list[float]
) -> None:
    """This covers a kill between the meter's file and the checkpoint, and damage to the last checkpoint."""
    path = tmp_path / "cost.json"
    meter = Meter(path, CPU, 0)
    for updates in (10, 15, 20):
        clock[0] += 4.0
        meter.save(updates, [10, 20])
    assert saved(path).keys() == {"10", "20"}
    again = Meter(path, CPU, updates=10)
    clock[0] += 5.0
    again.save(30, [20])
    found = [(one["first"], one["last"], one["seconds"]) for one in saved(path)["30"]]
    assert found == [(0, 10, 4.0), (10, 30, 5.0)]
    Meter(path, CPU, updates=0).save(10, [30])  # from scratch: the checkpoints of other parameters are gone
    assert saved(path).keys() == {"10"}


@pytest.mark.parametrize("before", [None, "[{", '{"x": []}', "gap"])
def test_an_incomplete_cost_is_not_kept(tmp_path: Path, clock: list[float], before: str | None) -> None:
    """For a checkpoint older than the meter, a damaged file or a gap: no hours are better than wrong ones."""
    path = tmp_path / "cost.json"
    if before == "gap":
        Meter(path, CPU, 0).save(40, [])
    elif before is not None:
        path.write_text(before)
    meter = Meter(path, CPU, 60)
    meter.save(90, [])
    meter.finish(90, tmp_path / "costs" / "model.json")
    assert not (tmp_path / "costs").exists()
