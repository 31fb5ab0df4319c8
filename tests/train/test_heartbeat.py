"""A worker that hangs ends the training; one that works or has left does not."""

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection

import pytest
import torch
import torch.distributed as dist

from convs2s.messages import reported
from convs2s.train import heartbeat
from convs2s.train.distributed import join_workers
from convs2s.train.heartbeat import LEFT, first_silent
from tests.train.forks import forked

pytestmark = pytest.mark.fault("workers")


class Beats(threading.Event):
    """Time in beats of the watching process; before each one, the others beat as scripted."""

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
    """The limit is twelve beats of five seconds; a worker that beats late, but beats, is not reported."""
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
    """The worker that writes continues alone, to export."""
    store = dist.HashStore()
    assert watch(0, [1], Beats(500, lambda now: store.add("1", 1 if now < 7 else LEFT)), store) is None


def be_stopped() -> None:
    """Run as one of two workers, the second of which stops itself."""
    heartbeat.INTERVAL, heartbeat.SILENCE = 0.1, 3.0
    with join_workers(2) as workers:
        workers.barrier()
        if workers.rank == 1:
            os.kill(os.getpid(), signal.SIGSTOP)
        workers.total(torch.ones(1))


def test_a_stopped_process_ends_the_other(capfd: pytest.CaptureFixture[str]) -> None:
    """One of two gets SIGSTOP: gloo itself would wait for half an hour."""
    with forked(2, be_stopped) as workers:
        workers[0].join(60)
        assert workers[0].exitcode == 1
    message = capfd.readouterr().err
    assert f"Worker 1 (process {workers[1].pid} on " in message
    assert "has sent no heartbeat for 3 s, so training stops." in message


def be_killed() -> None:
    """Run as one of two workers, the second of which kills itself."""
    with reported(f"worker {os.environ['RANK']}", "", ""), join_workers(2) as workers:
        workers.barrier()
        if workers.rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        workers.total(torch.ones(1))


def test_a_killed_process_ends_the_other_with_a_message(capfd: pytest.CaptureFixture[str]) -> None:
    """One of two gets SIGKILL; gloo's RuntimeError in the other would look like our bug."""
    with forked(2, be_killed) as workers:
        workers[0].join(60)
        assert workers[0].exitcode == 2
    message = capfd.readouterr().err
    assert message.startswith("worker 0: error: another worker has exited or cannot be reached")
    assert message.count("\n") == 1


def keep_store(port: Connection) -> None:
    """Hold the workers' store, as torchrun does, and send its port."""
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    port.send(store.port)
    time.sleep(60)


class Ended(Exception):
    """Raised instead of ending this process."""


def test_workers_end_with_the_process_that_started_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """It holds the store, so a lost connection shows that it has ended, even if it was killed."""

    def ended(message: str) -> None:
        raise Ended(message)

    monkeypatch.setattr(heartbeat, "end", ended)
    monkeypatch.setattr(heartbeat, "INTERVAL", 0.01)
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    torchrun = context.Process(target=keep_store, args=(theirs,))
    torchrun.start()
    store = dist.TCPStore("127.0.0.1", ours.recv(), is_master=False)
    torchrun.kill()
    torchrun.join()
    with pytest.raises(Ended, match="The process that started this worker has exited"):
        heartbeat._watch(store, 0, [1], threading.Event())
