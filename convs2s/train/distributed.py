"""Several processes train one model; no other module deals with ranks (§4.2, T13)."""

import contextlib
import os
import platform
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import bf16_compress_hook
from torch.nn.parallel import DistributedDataParallel

from convs2s.model.precision import Precision

# A worker that does not answer for this long counts as lost: suspended, or on an unreachable machine. It is
# so long because all wait for the writer if its last checkpoint is still being written or copied.
TIMEOUT = timedelta(minutes=10)
T = TypeVar("T")
CPU_NAMES = Path("/proc/cpuinfo")


@dataclass(frozen=True)
class Workers:
    """The processes of this training, as seen by one of them.

    Attributes:
        count: processes in total.
        writer: rank of the process that writes files.
        local: processes on this machine.
    """

    rank: int
    count: int
    device: torch.device
    writer: int = 0
    local: int = 1

    @property
    def writes(self) -> bool:
        """Whether this process writes files and shows progress."""
        return self.rank == self.writer

    def wrap(self, module: nn.Module, precision: Precision) -> nn.Module:
        """Make backward average gradients over all workers, if there are several.

        They are exchanged in the precision of products, overlapping with backward in the layers below.
        """
        if self.count == 1:
            return module
        ids = [self.device.index] if self.device.type == "cuda" else None
        wrapped = DistributedDataParallel(module, device_ids=ids, gradient_as_bucket_view=True)
        if precision == "bfloat16":
            # In a lambda, because PyTorch checks the hook's name and refuses this one without a GPU.
            wrapped.register_comm_hook(None, lambda _, bucket: bf16_compress_hook(None, bucket))  # type: ignore[arg-type]
        return wrapped

    def accumulate(self, module: nn.Module, last: bool) -> contextlib.AbstractContextManager[None]:
        """Delay the exchange of gradients until the last part of a batch."""
        if isinstance(module, DistributedDataParallel) and not last:
            return module.no_sync()
        return contextlib.nullcontext()

    def total(self, values: Tensor) -> Tensor:
        """Sum values over all workers, in place."""
        if self.count > 1:
            dist.all_reduce(values)
        return values

    def from_writer(self, value: T) -> T:
        """Return the value passed by the writer, on each of several workers."""
        shared = [value]
        dist.broadcast_object_list(shared, self.writer)
        return shared[0]

    def copy_from_writer(self, tensors: Iterable[Tensor]) -> None:
        """Change tensors of several workers in place to those of the writer."""
        for tensor in tensors:
            dist.broadcast(tensor, self.writer)

    def hardware(self) -> dict[str, str | int]:
        """Return the name of the devices, what their number counts, their number, and PyTorch's version."""
        if self.device.type == "cuda":
            name, unit, count = torch.cuda.get_device_name(self.device), "GPU", self.count
        else:
            name, unit, count = cpu_name(), "CPU core", self.count * torch.get_num_threads()
        return {"device": name, "unit": unit, "count": count, "torch": str(torch.__version__)}

    def barrier(self) -> None:
        """Wait until all workers have called this."""
        if self.count > 1:
            dist.barrier()


@contextlib.contextmanager
def join_workers(local_workers: int, may_write: bool = True) -> Iterator[Workers]:
    """Join the other processes if torchrun has started any; leave them at the end.

    Args:
        local_workers: processes on this machine; with GPUs, each gets its own.
        may_write: whether this process sees the folder where the training was started. Of those that do, the
            one of lowest rank becomes the writer.
    """
    # Variables of torchrun; without it, those of a single process.
    place = {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0"} | os.environ
    rank, count, local = (int(place[name]) for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"))
    device = choose_device(local, local_workers)
    if count == 1:
        yield Workers(rank, count, device, local=local_workers)
        return
    if device.type == "cuda":
        torch.cuda.set_device(device)
    try:
        dist.init_process_group("nccl" if device.type == "cuda" else "gloo", timeout=TIMEOUT)
        may_write_of_rank = [False] * count
        dist.all_gather_object(may_write_of_rank, may_write)
        if True not in may_write_of_rank:
            raise ValueError("no node is in the folder where the training was started, or shares it.")
        yield Workers(rank, count, device, may_write_of_rank.index(True), local_workers)
    except RuntimeError as error:
        # NCCL and the store have a type of their own; gloo has only the file that its messages name.
        if not (isinstance(error, dist.DistError) or "gloo/transport" in str(error)):
            raise
        raise ConnectionError(
            "another worker has exited, is suspended or cannot be reached, so this one stops too. Run the "
            "same command again to resume from the last checkpoint. CONVS2S_DEBUG=1 shows where it noticed."
        ) from error
    finally:
        if dist.is_initialized():
            dist.destroy_process_group()


def cpu_name() -> str:
    """Return the CPU's name, family and model, as reported by the system: many generations share a name."""
    facts: dict[str, str] = {}
    if CPU_NAMES.is_file():
        for line in CPU_NAMES.read_text("utf-8", errors="replace").split("\n"):
            key, _, value = line.partition(":")
            facts[key.strip()] = value.strip()
    if "model name" not in facts:
        return platform.machine()
    return f"{facts['model name']} (family {facts.get('cpu family')}, model {facts.get('model')})"


def choose_device(local_rank: int, local_workers: int) -> torch.device:
    """Return this process's device: its own GPU, or the CPU without any; a ValueError if they are few."""
    gpus = torch.cuda.device_count()
    if gpus == 0:
        return torch.device("cpu")
    if gpus < local_workers:
        raise ValueError(
            f"train.workers: found {local_workers} processes, but only {gpus} GPU(s) are visible "
            f"(CUDA_VISIBLE_DEVICES={os.environ.get('CUDA_VISIBLE_DEVICES', 'unset')}). Expected one GPU "
            f"per process: set run.processes to {gpus}, whose updates are the same and take longer, or "
            "CUDA_VISIBLE_DEVICES= to train on the CPU."
        )
    return torch.device("cuda", local_rank)
