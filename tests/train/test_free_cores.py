"""A training that shares its cores says so."""

from pathlib import Path

import pytest
import torch

from convs2s.train.running import free_cores
from convs2s.train.running.free_cores import count_free, warn_if_busy

BEFORE = "cpu  0 0 0 0 0 0 0 0 0 0\ncpu0 100 0 50 1000 0 0 0 0 0 0\ncpu1 100 0 50 1000 0 0 0 0 7 7\nintr 1\n"
AFTER = {
    "idle": "cpu0 100 0 50 1025 0 0 0 0 0 0\ncpu1 100 0 50 1020 5 0 0 0 7 7\n",
    "one busy": "cpu0 125 0 50 1000 0 0 0 0 0 0\ncpu1 100 0 50 1025 0 0 0 0 7 7\n",
    "stolen": "cpu0 100 0 50 1000 0 0 0 25 0 0\ncpu1 120 0 55 1000 0 0 0 0 27 7\n",
}


@pytest.fixture(autouse=True)
def _two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1})


@pytest.mark.parametrize(("state", "free"), [("idle", 2.0), ("one busy", 1.0), ("stolen", 0.0)])
def test_idle_cores_are_counted(state: str, free: float) -> None:
    """Waiting for a disk leaves a core free; what another machine on the same processor takes does not."""
    assert count_free(BEFORE, AFTER[state]) == free


@pytest.mark.parametrize(
    ("state", "threads", "workers", "advice"),
    [
        ("idle", 2, 1, None),
        ("one busy", 1, 1, None),
        ("one busy", 2, 1, "other processes use 1.0 of 2 cores, and training has 2 threads"),
        ("one busy", 1, 2, "other processes use 1.0 of 2 cores, and training has 2 threads"),
        ("stolen", 2, 1, "With fewer, which round differently: OMP_NUM_THREADS=1"),
        ("stolen", 1, 1, "training has 1 thread, so it is slower than alone."),
    ],
)
def test_threads_without_a_core_are_a_warning(
    state: str,
    threads: int,
    workers: int,
    advice: str | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two threads on one core train at half the speed of one, and nothing else says why."""
    stat = tmp_path / "stat"
    stat.write_text(BEFORE)
    monkeypatch.setattr(free_cores, "STAT", stat)
    monkeypatch.setattr("time.sleep", lambda _: stat.write_text(AFTER[state]))
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    warning = warn_if_busy(workers)
    assert warning is None if advice is None else warning is not None and advice in warning


def test_a_system_without_these_counts_says_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are Linux's."""
    monkeypatch.setattr(free_cores, "STAT", tmp_path / "none")
    assert warn_if_busy(1) is None
