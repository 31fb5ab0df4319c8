"""Heartbeats between workers: training stops if a worker is suspended or becomes unreachable.

Without them the other workers would wait silently for PyTorch's timeout: half an hour with gloo. That timeout
cannot be shortened, or training would also stop while the first worker takes long to write a checkpoint. The
heartbeat comes from a thread, which keeps running during such work and stops only with its process.
"""

import contextlib
import os
import socket
import sys
import threading
from collections.abc import Iterator
from datetime import timedelta

import torch.distributed as dist

INTERVAL = 5.0  # seconds between beats
SILENCE = 60.0  # seconds until a silent worker counts as lost; torchrun then needs 30 to kill the rest
LEFT = -(2**40)  # added to the beats of a worker that has finished


@contextlib.contextmanager
def watched(rank: int, count: int) -> Iterator[None]:
    """Send heartbeats; exit if a worker this one watches falls silent, or the launcher has exited.

    The first worker watches all others; each of the others watches the first.
    """
    host, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    store = dist.TCPStore(host, port, is_master=False, timeout=timedelta(seconds=SILENCE))
    beats = dist.PrefixStore(f"beats/{os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}", store)
    over = threading.Event()
    others = list(range(1, count)) if rank == 0 else [0]
    thread = threading.Thread(target=_watch, args=(beats, rank, others, over), daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(INTERVAL)
        with contextlib.suppress(dist.DistError):
            beats.add(str(rank), LEFT)


def _watch(store: dist.Store, rank: int, others: list[int], over: threading.Event) -> None:
    try:
        store.set(f"place/{rank}", f"process {os.getpid()} on {socket.gethostname()}")
        lost = first_silent(store, rank, others, over, INTERVAL, SILENCE)
    except dist.DistNetworkError:
        if over.is_set():
            return
        end("The process that started this worker has exited, so this worker exits too.")
    if lost is not None:
        key = f"place/{lost}"
        place = store.get(key).decode() if store.check([key]) else "place unknown"
        end(
            f"Worker {lost} ({place}) has sent no heartbeat for {SILENCE:g} s, so training stops. Was it "
            "suspended, or is its machine unreachable? Run the same command again to resume from the last "
            "checkpoint."
        )


def first_silent(
    store: dist.Store, rank: int, others: list[int], over: threading.Event, interval: float, silence: float
) -> int | None:
    """Send heartbeats until another worker has been silent for `silence` seconds; return its rank.

    Returns None once `over` is set. Time is counted in heartbeats of this process, not by the clock, so no
    worker counts as silent when all are suspended and continued together.
    """
    seen, missed = dict.fromkeys(others, 0), dict.fromkeys(others, 0)
    while not over.wait(interval):
        store.add(str(rank), 1)
        for other in others:
            beats = store.add(str(other), 0)
            missed[other] = missed[other] + 1 if beats == seen[other] and beats >= 0 else 0
            seen[other] = beats
            if missed[other] * interval >= silence:
                return other
    return None


def end(message: str) -> None:
    """Exit immediately, without cleanup, which might wait forever for another worker."""
    print(message, file=sys.stderr, flush=True)
    os._exit(1)
