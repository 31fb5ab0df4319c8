"""Shared resources: the GPUs of this machine, and the number of stages that may use its CPU at once."""

import contextlib
import logging
import os
import re
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence

from pipelines.flows.dvc_stage import StageEnded, StageFailed

SECONDS = 30.0  # for an answer of nvidia-smi, which hangs if a GPU does
# Its lines are in the log of a flow run; elsewhere, on the terminal.
logger = logging.getLogger("prefect.flow_runs.gpus")


def visible_gpus() -> list[str]:
    """Return the GPUs that this process may use, named as CUDA_VISIBLE_DEVICES does; else by number.

    That variable is read as CUDA reads it: numbers of nvidia-smi, or the first characters of UUIDs, also of
    MIG devices; the list ends before the first name that is no GPU's, and is empty if one has two names.
    """
    present = list_gpus()
    value = os.environ.get("CUDA_VISIBLE_DEVICES")
    if value is None or not present:
        return [*present]
    devices = [*present.values(), *(list_mig_devices() if "MIG-" in value else [])]
    names: dict[str, str] = {}  # by the device's UUID
    for name in map(str.strip, value.split(",")):
        number = re.match(r"\+?(\d+)", name)
        if number:
            name = str(int(number[1]))  # noqa: PLW2901  # CUDA ignores what follows
            found = [present[name]] if name in present else []
        elif legacy := re.match(r"MIG-(GPU-[^/]+)/\d+/\d+$", name):  # which newer drivers do not list
            found = [name] if legacy[1] in devices or name in devices else []
        else:
            found = [uuid for uuid in devices if name and uuid.startswith(name)]
        if len(found) != 1:
            if name and not name.startswith("-"):
                logger.warning(
                    "CUDA_VISIBLE_DEVICES=%s: expected numbers or UUIDs of GPUs as nvidia-smi -L lists them, "
                    "found %r, at which CUDA ends the list. GPUs that are used: %s",
                    *(value, name, ", ".join(names.values()) or "none"),
                )
            break
        if found[0] in names:
            logger.warning(
                "CUDA_VISIBLE_DEVICES=%s: expected each GPU once, found %r, which is there twice; CUDA then "
                "uses none.",
                *(value, name),
            )
            return []
        names[found[0]] = name
    return [*names.values()]


def list_gpus() -> dict[str, str]:
    """Return the UUIDs of the GPUs of this machine by number, in the order of nvidia-smi."""
    lines = ask_driver("--query-gpu=index,uuid", "--format=csv,noheader")
    found = [re.fullmatch(r"(\d+)(?:, *(\S+))?", line.strip()) for line in lines]
    return {gpu[1]: gpu[2] or gpu[1] for gpu in found if gpu}


def list_mig_devices() -> list[str]:
    """Return the UUIDs of the MIG devices of this machine."""
    return [uuid for line in ask_driver("-L") for uuid in re.findall(r"UUID: (MIG-[^)]+)\)", line)]


def has_driver_program() -> bool:
    """Return whether nvidia-smi, and not only CUDA, can say which GPUs there are."""
    return shutil.which("nvidia-smi") is not None


def ask_driver(*options: str) -> list[str]:
    """Return the lines that nvidia-smi prints; none, with a warning, if it fails or does not answer.

    Images for GPUs have it on machines without one, too.
    """
    if not has_driver_program():
        return []
    process = subprocess.Popen(
        ["nvidia-smi", *options],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    try:
        said, _ = process.communicate(timeout=SECONDS)
        fault = f"has failed with status {process.returncode}: {' '.join(said.split())}"
    except subprocess.TimeoutExpired:
        process.kill()  # without waiting for its end: it may hang in the kernel
        fault = f"has not answered for {SECONDS:g} s"
    if process.returncode == 0:
        return said.splitlines()
    logger.warning("nvidia-smi %s. No GPU is used. If there is one, see to its driver.", fault)
    return []


class Leases:
    """Leases GPUs and CPU slots to concurrent stages; without GPUs, every stage takes a CPU slot."""

    def __init__(self, gpus: Sequence[str], slots: int) -> None:
        self.gpus = list(gpus)  # those that are free
        self.slots = [""] * slots  # likewise
        self.total = len(gpus)
        self.changed = threading.Condition()

    @contextlib.contextmanager
    def lease(
        self, wanted: int, stop: threading.Event, on_wait: Callable[[str], None]
    ) -> Iterator[list[str]]:
        """Wait until this number of GPUs, or a CPU slot, is free, or `stop` is set; yield the GPUs' names.

        Args:
            on_wait: called once, with a sentence, if it has to wait.
        """
        on_gpu = bool(wanted and self.total)
        free = self.gpus if on_gpu else self.slots
        count = wanted if on_gpu else 1
        if on_gpu and wanted > self.total:
            raise StageFailed(
                f"expected {wanted} GPUs, found {self.total}: set run.processes in params.yaml to "
                f"{self.total}, whose updates are the same and take longer"
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
