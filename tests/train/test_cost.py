"""The cost of a training adds up over its sessions."""

from typing import Any

import pytest

from convs2s.train import cost
from convs2s.train.cost import Meter, sum_up

CPU = {"device": "A CPU", "unit": "CPU core", "count": 2, "precision": "float32", "torch": "2.13.0"}


def test_seconds_and_tokens_add_up_over_interruptions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hours are of all cores, with validation; the speed is that of updates. A GPU has its own hours."""
    now = [100.0]
    monkeypatch.setattr(cost.time, "perf_counter", lambda: now[0])
    sessions = list[dict[str, Any]]()
    assert sum_up([]) == {"hardware": "", "products in": "", "PyTorch": ""}
    first = Meter(sessions, CPU)
    for now[0] in (1000.0, 1900.0):
        first.count(600.0, 30_000)
    now[0] = 2000.0  # an epoch's validation ends, and its checkpoint is saved
    first.count()
    lost = Meter([*sessions], CPU)  # what comes after the checkpoint
    lost.count(5.0, 1000)
    second = Meter(sessions, CPU | {"device": "A GPU", "unit": "GPU", "count": 1})
    now[0] = 2000.0 + 3600.0
    second.count(1200.0, 60_000)
    assert sum_up(sessions) == {
        "hardware": "2 x A CPU, 1 x A GPU", "CPU core-hours": 1.0556, "GPU-hours": 1.0,
        "target tokens/s": 50, "products in": "float32", "PyTorch": "2.13.0",
    }  # fmt: skip
