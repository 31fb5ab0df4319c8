"""What stages share: the GPUs of this machine, and how many stages may use its CPU at once."""

import contextlib
import os
import shutil
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

from pipelines import shell
from pipelines.flows.dvc_stage import StageNotStarted


def visible_gpus() -> list[int]:
    """Return the ids of the GPUs that this process may use; none if there is no driver.

    CUDA_VISIBLE_DEVICES narrows them, as for any program that uses CUDA. A ValueError is raised if it names
    GPUs in another way, or nvidia-smi fails.
    """
    if shutil.which("nvidia-smi") is None:
        return []
    try:
        shown = shell.run("nvidia-smi", "--query-gpu=index", "--format=csv,noheader", cwd=Path())
    except shell.CommandFailed as error:
        raise ValueError(
            f"GPUs cannot be leased: {error}. Fix the driver, or take nvidia-smi off PATH to run on the CPU."
        ) from error
    present = [int(line) for line in shown.split() if line.isdigit()]
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    try:
        wanted = present if named is None else [int(part) for part in named.split(",") if part.strip()]
    except ValueError:
        raise ValueError(
            f"CUDA_VISIBLE_DEVICES: found {named}, wanted numbers as nvidia-smi counts GPUs."
        ) from None
    return [gpu for gpu in wanted if gpu in present]


def choose_gpus(asked: Sequence[int]) -> list[int]:
    """Return the GPU ids to lease: those asked for, or all; raise a ValueError if one is missing or twice."""
    present = visible_gpus()
    if not asked:
        return present
    if len(set(asked)) < len(asked) or not set(asked) <= set(present):
        raise ValueError(
            f"gpus: found {list(asked)}; this machine shows {present or 'none'} "
            f"(CUDA_VISIBLE_DEVICES={os.environ.get('CUDA_VISIBLE_DEVICES', 'unset')}). Wanted ids of GPUs "
            "that are there, each once; leave gpus empty to use all of them."
        )
    return list(asked)


def queue(gpus: int) -> str:
    """Return the name of the work queue for stages that take so many GPUs."""
    return f"gpus-{gpus}" if gpus else "cpu"


def queues() -> list[str]:
    """Return the work queues that a worker on this machine can serve; raises what `visible_gpus` does."""
    return [queue(gpus) for gpus in range(len(visible_gpus()) + 1)]


class Leases:
    """GPUs, and places on the CPU, that stages side by side lease; without GPUs every stage takes a place."""

    def __init__(self, gpus: Sequence[int], places: int) -> None:
        self.gpus, self.places = list(gpus), list(range(places))
        self.has_gpus = bool(gpus)
        self.changed = threading.Condition()

    @contextlib.contextmanager
    def lease(self, wanted: int, stop: threading.Event) -> Iterator[list[int]]:
        """Wait until so many GPUs, or a place, are free; give the GPUs' ids.

        Raises StageNotStarted if `stop` is set before.
        """
        on_gpu = bool(wanted and self.has_gpus)
        free = self.gpus if on_gpu else self.places
        count = wanted if on_gpu else 1
        with self.changed:
            while len(free) < count and not stop.is_set():
                self.changed.wait(0.5)  # nobody notifies of `stop`
            if stop.is_set():
                raise StageNotStarted
            taken = [free.pop(0) for _ in range(count)]
        try:
            yield taken if on_gpu else []
        finally:
            with self.changed:
                free.extend(taken)
                self.changed.notify_all()
