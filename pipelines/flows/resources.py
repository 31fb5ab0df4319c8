"""Shared resources: the GPUs of this machine, and the number of stages that may use its CPU at once."""

import contextlib
import os
import shutil
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

from pipelines import shell
from pipelines.flows.dvc_stage import StageEnded


def visible_gpus() -> list[int]:
    """Return the ids of the GPUs, as nvidia-smi shows them, that CUDA_VISIBLE_DEVICES lets this process use.

    Without a driver there are none. Raises CommandFailed if nvidia-smi fails.
    """
    if shutil.which("nvidia-smi") is None:
        return []
    present = shell.run("nvidia-smi", "--query-gpu=index", "--format=csv,noheader", cwd=Path()).split()
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    return [int(gpu) for gpu in (present if named is None else named.split(",")) if gpu in present]


def choose_gpus(asked: Sequence[int]) -> list[int]:
    """Return the GPU ids to lease: `asked`, or all; raise a ValueError if one is missing or duplicated."""
    present = visible_gpus()
    if len(set(asked)) < len(asked) or not set(asked) <= set(present):
        raise ValueError(f"gpus: expected some of {present}, each once, found {list(asked)}")
    return list(asked) or present


def queue(gpus: int) -> str:
    """Return the name of the work queue for stages that use this number of GPUs."""
    return f"gpus-{gpus}" if gpus else "cpu"


def queues() -> list[str]:
    """Return the work queues that a worker on this machine can serve; raises as `visible_gpus` does."""
    return [queue(gpus) for gpus in range(len(visible_gpus()) + 1)]


class Leases:
    """Leases GPUs and CPU slots to concurrent stages; without GPUs, every stage takes a CPU slot."""

    def __init__(self, gpus: Sequence[int], slots: int) -> None:
        self.gpus, self.slots = list(gpus), list(range(slots))
        self.has_gpus = bool(gpus)
        self.changed = threading.Condition()

    @contextlib.contextmanager
    def lease(self, wanted: int, stop: threading.Event) -> Iterator[list[int]]:
        """Wait until this number of GPUs, or a CPU slot, is free, or `stop` is set; yield the GPUs' ids."""
        on_gpu = bool(wanted and self.has_gpus)
        free = self.gpus if on_gpu else self.slots
        count = wanted if on_gpu else 1
        with self.changed:
            while len(free) < count and not stop.is_set():
                self.changed.wait(0.5)  # `stop` does not notify
            if stop.is_set():
                raise StageEnded("was not started, because the flow run was cancelled or ended")
            taken = [free.pop(0) for _ in range(count)]
        try:
            yield taken if on_gpu else []
        finally:
            with self.changed:
                free.extend(taken)
                self.changed.notify_all()
