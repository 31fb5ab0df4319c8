"""The cost of a training survives interruptions, separately from its outputs, under the model's hash."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from convs2s.train import cost
from convs2s.train.cost import (
    Meter,
    Session,
    file_name,
    history,
    keep_cost,
    read_sessions,
    target_tokens_per_second,
    timed,
)
from convs2s.train.distributed import Workers

ALONE, THREE = Workers(0, 1, torch.device("cpu")), Workers(0, 3, torch.device("cpu"))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, in seconds, that tests set."""
    now = [100.0]
    monkeypatch.setattr(cost.time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(cost, "cpu_name", lambda: "A CPU")
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    return now


def weights(folder: Path, content: bytes = b"weights") -> Path:
    path = folder / "weights.safetensors"
    path.write_bytes(content)
    return path


def test_seconds_add_up_over_interruptions(tmp_path: Path, clock: list[float]) -> None:
    """Each session counts up to its last checkpoint, with the hardware that it ran on."""
    path = tmp_path / "cost.json"
    first = Meter(path, ALONE, updates=0)
    for clock[0], updates in ((110.0, 50), (125.0, 80)):
        first.count(600, 8.0)
        first.save(updates, [50, 80])
    first.count(1000, 4.0)
    clock[0] = 130.0  # killed, five seconds after its checkpoint
    second = Meter(path, THREE, updates=80)
    clock[0] = 137.5
    second.count(300, 4.0)
    second.save(100, [])
    version = torch.__version__
    wanted = [Session("A CPU", "CPU core", 2, version, 0, 80, 25.0, 1200, 16.0)]
    wanted += [Session("A CPU", "CPU core", 6, version, 80, 100, 7.5, 300, 4.0)]
    keep_cost(path, 100, weights(tmp_path), tmp_path / "costs")
    kept = tmp_path / "costs" / file_name(tmp_path / "weights.safetensors")
    assert read_sessions(kept) == wanted
    assert target_tokens_per_second(wanted) == 75.0


def test_sessions_from_before_tokens_were_counted_are_read(tmp_path: Path, clock: list[float]) -> None:
    """Their hours count; the speed of a training resumed from them is unknown."""
    path, old = tmp_path / "cost.json", {"device": "A CPU", "unit": "CPU core", "count": 2, "torch": "2.13.0"}
    path.write_text(json.dumps({"80": [{**old, "first": 0, "last": 80, "seconds": 25.0}]}))
    meter = Meter(path, ALONE, updates=80)
    meter.count(300, 4.0)
    meter.save(100, [])
    sessions = history(path)[100]
    assert [one.seconds for one in sessions] == [25.0, 0.0]
    assert target_tokens_per_second(sessions) is None
    assert target_tokens_per_second(sessions[1:]) == 75.0
    assert target_tokens_per_second([]) is None


def test_only_the_time_until_a_report_is_counted(clock: list[float]) -> None:
    """Saving checkpoints and drawing the progress bar between reports do not count."""

    def reports() -> Iterator[str]:
        for name, seconds in (("update", 2.0), ("update", 3.0), ("epoch", 40.0)):
            clock[0] += seconds
            yield name

    found = []
    for report, seconds in timed(reports()):
        found.append((report, seconds))
        clock[0] += 500.0
    assert found == [("update", 2.0), ("update", 3.0), ("epoch", 40.0)]


def test_gpus_count_by_name(clock: list[float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is one per worker, regardless of the number of threads."""
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: f"GPU of {device}")
    session = Meter(tmp_path / "c", Workers(0, 4, torch.device("cuda", 1)), 0).session
    assert (session.device, session.unit, session.count) == ("GPU of cuda:1", "GPU", 4)


def test_a_training_that_starts_from_scratch_drops_earlier_costs(tmp_path: Path, clock: list[float]) -> None:
    """The checkpoint of other parameters is dropped, and so are its seconds."""
    path = tmp_path / "cost.json"
    Meter(path, ALONE, 0).save(500, [])
    clock[0] += 3.0
    meter = Meter(path, ALONE, 0)
    meter.save(10, [500])
    assert [session.last for session in history(path)[10]] == [10]
    assert history(path).keys() == {10}


def test_what_came_after_a_checkpoint_is_not_counted_on_resuming_from_it(
    tmp_path: Path, clock: list[float]
) -> None:
    """This covers a kill between the meter's file and the checkpoint, and damage to the last checkpoint."""
    path = tmp_path / "cost.json"
    meter = Meter(path, ALONE, 0)
    for updates in (10, 15, 20):
        clock[0] += 4.0
        meter.save(updates, [10, 20])
    assert history(path).keys() == {10, 20}
    again = Meter(path, ALONE, updates=10)
    clock[0] += 5.0
    again.save(30, [20])
    found = [(one.first, one.last, one.seconds) for one in history(path)[30]]
    assert found == [(0, 10, 4.0), (10, 30, 5.0)]


@pytest.mark.parametrize("before", [None, "[{", '{"x": []}', '{"60": [{"device": 1}]}', "gap"])
def test_an_incomplete_cost_is_not_kept(tmp_path: Path, clock: list[float], before: str | None) -> None:
    """For a checkpoint older than the meter, a damaged file or a gap: no hours are better than wrong ones."""
    path = tmp_path / "cost.json"
    if before == "gap":
        Meter(path, ALONE, 0).save(40, [])
    elif before is not None:
        path.write_text(before)
    Meter(path, ALONE, 60).save(90, [])
    keep_cost(path, 90, weights(tmp_path), tmp_path / "costs")
    assert not (tmp_path / "costs").exists()


def test_models_have_their_own_files(tmp_path: Path, clock: list[float]) -> None:
    """A model restored from DVC's cache has its own cost, not that of the last training."""
    for content, updates in ((b"one", 10), (b"two", 20)):
        Meter(tmp_path / "cost.json", ALONE, 0).save(updates, [])
        keep_cost(tmp_path / "cost.json", updates, weights(tmp_path, content), tmp_path / "costs")
    (session,) = read_sessions(tmp_path / "costs" / file_name(weights(tmp_path, b"one")))
    assert session.last == 10


def test_the_cpu_has_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is the one that the system reports, or else the architecture."""
    names = tmp_path / "cpuinfo"
    monkeypatch.setattr(cost, "CPU_NAMES", names)
    assert cost.cpu_name() == cost.platform.machine()
    names.write_text("processor\t: 0\nmodel name\t: Made: for a test\n")
    assert cost.cpu_name() == "Made: for a test"


def test_sessions_are_readable_by_people(tmp_path: Path, clock: list[float]) -> None:
    """They are JSON, one key per value."""
    Meter(tmp_path / "c.json", ALONE, 0).save(7, [])
    (found,) = json.loads((tmp_path / "c.json").read_text())["7"]
    assert found["unit"] == "CPU core"
    assert (found["first"], found["last"], found["seconds"]) == (0, 7, 0.0)
