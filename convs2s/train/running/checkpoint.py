"""A checkpoint: everything needed to resume, in one file, written atomically and read without pickle.

The metadata holds the format, the state, the fingerprint, and a CRC-32 of all: after a power cut, a file that
was whole may hold zeros.
"""

import contextlib
import dataclasses
import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from pydantic import TypeAdapter
from safetensors import safe_open
from torch import Tensor

from convs2s.base.files import atomic_path
from convs2s.base.messages import is_out_of_memory
from convs2s.config.format import FORMAT, NewerFormatError, check_format
from convs2s.model.initialization import fold_weight_norm, folded_weights
from convs2s.model.storage import check_fit, write_tensors
from convs2s.train.training import State, Training

WEIGHTS = "weights"
STATE = TypeAdapter(State)
PRINTS = TypeAdapter(dict[str, str])


@dataclass(frozen=True)
class TrainingCheckpoint:
    """The contents of a checkpoint."""

    prints: dict[str, str]
    state: State
    tensors: dict[str, Tensor]


def checkpoint_name(updates: int | str) -> str:
    """Return the file name of the checkpoint after `updates` updates; for `*`, the pattern matching all."""
    return f"checkpoint-{updates}.safetensors"


def list_updates(names: Iterable[str]) -> list[int]:
    """Return the numbers of updates in the names of checkpoints, ascending; other names are ignored."""
    prefix, suffix = checkpoint_name("*").split("*")
    numbers = (name.removeprefix(prefix).removesuffix(suffix) for name in names)
    return sorted(int(number) for number in numbers if number.isdecimal())


class HostMemory:
    """Memory of the host for one copy of a training's weights and buffers, which each copy overwrites.

    It is pinned if they are on a GPU. The first copy allocates it, and takes longer.
    """

    def __init__(self) -> None:
        self.tensors: dict[str, Tensor] = {}

    def copy(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Copy tensors, always of the same names and shapes; they may change as soon as this returns."""
        devices = {tensor.device for tensor in tensors.values() if tensor.is_cuda}
        for name, tensor in tensors.items():
            if name not in self.tensors:
                self.tensors[name] = allocate_on_host(tensor)
            self.tensors[name].copy_(tensor, non_blocking=True)
        for device in devices:
            torch.cuda.synchronize(device)
        return self.tensors


def allocate_on_host(tensor: Tensor) -> Tensor:
    """Return memory of the host for a tensor: pinned, if it is on a GPU and the system grants that."""
    if tensor.is_cuda:
        with contextlib.suppress(RuntimeError):  # WSL, for example, limits it
            return torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
    return torch.empty(tensor.shape, dtype=tensor.dtype)


@dataclass(frozen=True)
class Snapshot:
    """What a checkpoint will hold."""

    updates: int
    metadata: dict[str, str]
    tensors: dict[str, Tensor]

    @classmethod
    def take(cls, training: Training, prints: dict[str, str], memory: HostMemory | None = None) -> "Snapshot":
        """Take weights, the optimizer's buffers and state.

        Args:
            memory: for a copy, so that training may go on while the snapshot is written; the next one
                overwrites it. None: training must wait.
        """
        tensors = {
            f"{WEIGHTS}/{name}": weight.detach() for name, weight in weights_of(training.model).items()
        }
        for kind, buffer in training.optimizer.buffers.items():
            tensors |= {f"{kind}/{name}": buffer[p] for name, p in training.model.named_parameters()}
        metadata = {
            "format": FORMAT,
            "state": json.dumps(dataclasses.asdict(training.state)),
            "fingerprint": json.dumps(prints),
        }
        if memory is None:
            tensors = {name: tensor.cpu().contiguous() for name, tensor in tensors.items()}
        else:
            tensors = memory.copy(tensors)
        return cls(training.state.updates, metadata, tensors)

    def write(self, path: Path) -> None:
        """Write the checkpoint; errors as `write_tensors`."""
        with atomic_path(path) as temporary:
            crc32 = checksum(self.metadata, self.tensors)
            write_tensors(temporary, self.tensors, self.metadata | {"crc32": crc32})


def save_checkpoint(path: Path, training: Training, prints: dict[str, str]) -> None:
    """Write weights, the optimizer's buffers and state, while training waits."""
    Snapshot.take(training, prints).write(path)


def weights_of(model: torch.nn.Module) -> dict[str, Tensor]:
    """Return all parameters, tied ones once, and persistent buffers by name."""
    names = model.state_dict().keys()
    tensors = *model.named_parameters(), *model.named_buffers()
    return {name: tensor for name, tensor in tensors if name in names}


def read_checkpoint(path: Path) -> TrainingCheckpoint:
    """Read a checkpoint to the CPU.

    Raises:
        OSError: if there is none.
        NewerFormatError: if only later versions of convs2s can read it.
        ValueError: if it is damaged.
    """
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata()
            check_format(metadata.get("format"), path)
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  # no mapping
        if metadata["crc32"] != checksum(metadata, tensors):
            raise ValueError("its checksum does not match its content")
        state = STATE.validate_json(metadata["state"])
        return TrainingCheckpoint(PRINTS.validate_json(metadata["fingerprint"]), state, tensors)
    except (FileNotFoundError, NewerFormatError):
        raise
    except Exception as error:  # an unknown type of numbers, for instance, is a RuntimeError of PyTorch
        if is_out_of_memory(error):
            raise
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        raise ValueError(
            f"{path} is damaged ({reason}). Expected a checkpoint as saved during training."
        ) from error


def checksum(metadata: Mapping[str, str], tensors: Mapping[str, Tensor]) -> str:
    """Return the CRC-32 of the state, the fingerprint and all tensors with their names and shapes."""
    crc = zlib.crc32((metadata["state"] + metadata["fingerprint"]).encode())
    for name, tensor in sorted(tensors.items()):
        crc = zlib.crc32(f"{name} {tensor.dtype} {list(tensor.shape)}".encode(), crc)
        crc = zlib.crc32(tensor.flatten().view(torch.uint8).numpy().data, crc)
    return f"{crc:08x}"


def restore(checkpoint: TrainingCheckpoint, training: Training, origin: Path) -> None:
    """Load weights, buffers and state into a training; a ValueError, and no change, if they do not fit."""
    optimizer = training.optimizer
    parameters = dict(training.model.named_parameters())
    own = {f"{WEIGHTS}/{name}": tensor for name, tensor in weights_of(training.model).items()}
    own |= {f"{kind}/{name}": p for kind in optimizer.buffers for name, p in parameters.items()}
    check_fit(own, checkpoint.tensors, origin)
    load_weights(training.model, checkpoint, origin)
    for kind, buffer in optimizer.buffers.items():
        for name, tensor in select_tensors(checkpoint, kind).items():
            buffer[parameters[name]] = tensor.to(training.workers.device, copy=True)
    training.state = checkpoint.state


def load_weights(model: torch.nn.Module, checkpoint: TrainingCheckpoint, origin: Path) -> None:
    """Load a checkpoint's weights into a model; raise ValueError if they do not fit."""
    weights = select_tensors(checkpoint, WEIGHTS)
    check_fit(weights_of(model), weights, origin)
    model.load_state_dict(weights, strict=False)  # it would expect tied weights under both names


def load_mean(model: torch.nn.Module, checkpoints: Sequence[TrainingCheckpoint], origin: Path) -> None:
    """Load the checkpoints' mean weights, weight norm folded in, for export; errors as `load_weights`.

    Integers, such as BatchNorm's number of batches, have no mean: those of the last checkpoint are loaded.
    """
    means: dict[str, Tensor] = {}
    for checkpoint in checkpoints:
        load_weights(model, checkpoint, origin)
        for name, weight in folded_weights(model).items():
            mean = means.get(name, 0.0) + weight / len(checkpoints)
            means[name] = mean if weight.is_floating_point() else weight
    fold_weight_norm(model)
    model.load_state_dict(means)


def select_tensors(checkpoint: TrainingCheckpoint, kind: str) -> dict[str, Tensor]:
    """Return the tensors of a kind (weights, or a buffer of the optimizer), by parameter name."""
    prefix = f"{kind}/"
    return {name.removeprefix(prefix): t for name, t in checkpoint.tensors.items() if name.startswith(prefix)}
