"""Signs of life between workers, so that one that is stopped or out of reach ends the training.

Otherwise the others wait for it, silently, until a time limit of PyTorch: half an hour with gloo. That limit
must stay long, since it also ends a training whose first worker takes its time to write a checkpoint. A
thread beats through such work, and stands still only with its process.
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
SILENCE = 60.0  # seconds without a beat before a worker is given up; torchrun then needs 30 to kill the rest
LEFT = -(2**40)  # added to the beats of a worker that has finished


@contextlib.contextmanager
def watched(rank: int, count: int) -> Iterator[None]:
    """Beat, and end this process if a worker that it watches falls silent or the launching process is gone.

    The first worker watches all others, and they watch the first.
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
        end("The process that started this worker is gone, so this worker ends.")
    if lost is not None:
        key = f"place/{lost}"
        place = store.get(key).decode() if store.check([key]) else "place unknown"
        end(
            f"Worker {lost} ({place}) has given no sign of life for {SILENCE:g} s, so the training ends. Is "
            "it stopped, or its machine out of reach? Run the same again, to resume from the last checkpoint."
        )


def first_silent(
    store: dist.Store, rank: int, others: list[int], over: threading.Event, interval: float, silence: float
) -> int | None:
    """Beat until another worker has been silent for `silence` seconds; return its rank.

    Returns None once `over` is set. Time is counted in beats of this process, not by the clock: when a whole
    training is stopped and continued, nobody has been silent.
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
    """End this process at once; whatever it waits for may never come."""
    print(message, file=sys.stderr, flush=True)
    os._exit(1)
