"""Shared resources: the GPUs of this machine, and the number of stages that may use its CPU at once."""

import contextlib
import os
import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from pipelines import shell
from pipelines.flows.dvc_stage import StageEnded, StageFailed


def visible_gpus() -> list[int]:
    """Return the ids of the GPUs that CUDA_VISIBLE_DEVICES lets this process use, as in nvidia-smi."""
    if shutil.which("nvidia-smi") is None:  # no driver
        return []
    present = shell.run("nvidia-smi", "--query-gpu=index", "--format=csv,noheader", cwd=Path()).split()
    visible = present
    if "CUDA_VISIBLE_DEVICES" in os.environ:
        visible = os.environ["CUDA_VISIBLE_DEVICES"].split(",")
    return [int(gpu) for gpu in visible if gpu in present]


class Leases:
    """Leases GPUs and CPU slots to concurrent stages; without GPUs, every stage takes a CPU slot."""

    def __init__(self, gpus: Sequence[int], slots: int) -> None:
        self.gpus = list(gpus)  # those that are free
        self.slots = list(range(slots))  # likewise
        self.total = len(gpus)
        self.changed = threading.Condition()

    @contextlib.contextmanager
    def lease(
        self, wanted: int, stop: threading.Event, on_wait: Callable[[str], None]
    ) -> Iterator[list[int]]:
        """Wait until this number of GPUs, or a CPU slot, is free, or `stop` is set; yield the GPUs' ids.

        Args:
            on_wait: called once, with a sentence, if it has to wait.
        """
        on_gpu = bool(wanted and self.total)
        free = self.gpus if on_gpu else self.slots
        count = wanted if on_gpu else 1
        if on_gpu and wanted > self.total:
            raise StageFailed(
                f"expected {wanted} GPUs, found {self.total}: lower train.workers in params.yaml"
            )
        with self.changed:
            if len(free) < count:
                on_wait(f"waits for {count} of {self.total} GPU(s)" if on_gpu else "waits for a CPU slot")
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
