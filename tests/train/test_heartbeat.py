"""A worker that stands still ends the training; one that works or has left does not."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable

import pytest
import torch.distributed as dist

from convs2s.train import heartbeat
from convs2s.train.heartbeat import LEFT, first_silent
from tests.train.tiny import ROOT

pytestmark = pytest.mark.fault("workers")


class Beats(threading.Event):
    """Time, in beats of the watching process; before each, the others beat as they are told."""

    def __init__(self, count: int, others: Callable[[int], object]) -> None:
        super().__init__()
        self.done, self.count, self.others = 0, count, others

    def wait(self, timeout: float | None = None) -> bool:
        self.done += 1
        self.others(self.done)
        return self.done > self.count


def watch(rank: int, others: list[int], beats: Beats, store: dist.Store) -> int | None:
    return first_silent(store, rank, others, beats, interval=5.0, silence=60.0)


def test_a_silent_worker_is_found_after_its_time() -> None:
    """Twelve beats of five seconds; whoever beats late, but beats, is not meant."""
    store = dist.HashStore()

    def others(now: int) -> None:
        if now % 11 == 0:
            store.add("1", 1)
        if now <= 30:
            store.add("2", 1)

    beats = Beats(1000, others)
    assert watch(0, [1, 2], beats, store) == 2
    assert beats.done == 30 + 12
    assert store.add("0", 0) == 42  # it has beaten itself


def test_a_worker_that_has_left_is_not_missed() -> None:
    """The one that writes goes on alone, to export."""
    store = dist.HashStore()
    assert watch(0, [1], Beats(500, lambda now: store.add("1", 1 if now < 7 else LEFT)), store) is None


STORE = """
import time, torch.distributed as dist
store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
print(store.port, flush=True)
time.sleep(60)
"""
TWO = """
import os, signal, torch
from convs2s.train import heartbeat
heartbeat.INTERVAL, heartbeat.SILENCE = 0.1, 3.0
from convs2s.train.distributed import join_workers
with join_workers(2) as workers:
    workers.barrier()
    if workers.rank == 1:
        os.kill(os.getpid(), signal.SIGSTOP)
    workers.total(torch.ones(1))
"""


def start(rank: int, port: int) -> subprocess.Popen[str]:
    environment = os.environ | {
        "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port), "TORCHELASTIC_USE_AGENT_STORE": "True", "OMP_NUM_THREADS": "1",
        "CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": str(ROOT),
    }  # fmt: skip
    return subprocess.Popen(
        [sys.executable, "-c", TWO],
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def test_a_stopped_process_ends_the_other() -> None:
    """SIGSTOP of one of two: gloo itself would wait for half an hour. This test plays torchrun."""
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    workers = [start(rank, store.port) for rank in range(2)]
    try:
        _, message = workers[0].communicate(timeout=60)
        assert workers[0].returncode == 1
        assert f"Worker 1 (process {workers[1].pid} on " in message
        assert "has given no sign of life for 3 s, so the training ends." in message
    finally:
        for worker in workers:
            worker.kill()
            worker.communicate()


class Ended(Exception):
    """Instead of the end of this process."""


def test_workers_end_with_the_process_that_started_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has the store, so a lost connection tells that it is gone, even if it was killed."""

    def ended(message: str) -> None:
        raise Ended(message)

    monkeypatch.setattr(heartbeat, "end", ended)
    monkeypatch.setattr(heartbeat, "INTERVAL", 0.01)
    torchrun = subprocess.Popen([sys.executable, "-c", STORE], stdout=subprocess.PIPE, text=True)
    with torchrun:
        assert torchrun.stdout is not None
        store = dist.TCPStore("127.0.0.1", int(torchrun.stdout.readline()), is_master=False)
        torchrun.kill()
    with pytest.raises(Ended, match="The process that started this worker is gone"):
        heartbeat._watch(store, 0, [1], threading.Event())
