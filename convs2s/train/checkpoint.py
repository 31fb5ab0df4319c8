"""Checkpoints: everything needed to resume, in one file, written atomically and read without pickle."""

import dataclasses
import json
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from convs2s.model.storage import check_fit, write_tensors
from convs2s.text.corpus.files import atomic_path
from convs2s.text.counted import counted
from convs2s.train.loop import State, Training


def save_checkpoint(path: Path, training: Training, prints: dict[str, str]) -> None:
    """Write weights, momentum and state.

    Raises:
        OSError: if the disk is full, for example; the previous checkpoint stays as it was.
    """
    names = [name for name, _ in training.model.named_parameters()]
    tensors = {f"weights/{name}": p.detach() for name, p in training.model.named_parameters()}
    momentum = training.optimizer.state_dict()["state"]
    for i, name in enumerate(names):
        if i in momentum:
            tensors[f"momentum/{name}"] = momentum[i]["momentum_buffer"]
    metadata = {
        "state": json.dumps(dataclasses.asdict(training.state)),
        "fingerprint": json.dumps(prints),
    }
    with atomic_path(path) as temporary:
        write_tensors(temporary, {name: tensor.contiguous() for name, tensor in tensors.items()}, metadata)


def resume(path: Path, training: Training, prints: dict[str, str]) -> str:
    """Resume from the checkpoint if it has the same fingerprint; return a message that says what was done."""
    if not path.is_file():
        return "Training starts."
    try:
        metadata, tensors = read(path, training.workers.device)
        found, state = json.loads(metadata["fingerprint"]), State(**json.loads(metadata["state"]))
    except (SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
        return f"Training starts afresh: the checkpoint {path} cannot be read ({error})."
    changed = sorted(name for name in prints.keys() | found.keys() if prints.get(name) != found.get(name))
    if changed:
        return (
            f"Training starts afresh: since the checkpoint {path} was written, these have changed: "
            f"{', '.join(changed)}."
        )
    load_weights(training.model, tensors, path)
    for name, parameter in training.model.named_parameters():
        if f"momentum/{name}" in tensors:
            training.optimizer.state[parameter]["momentum_buffer"] = tensors[f"momentum/{name}"]
    training.state = state
    epoch, updates = len(state.epochs) + 1, counted(state.updates, "update")
    return f"Training continues from {path}: epoch {epoch}, after {updates}."


def load_weights(model: torch.nn.Module, tensors: dict[str, Tensor], origin: Path) -> None:
    """Load a checkpoint's weights into a model.

    Raises:
        ValueError: if their names or shapes do not fit.
    """
    weights = {name.removeprefix("weights/"): t for name, t in tensors.items() if name.startswith("weights/")}
    check_fit(model, weights, origin)
    model.load_state_dict(weights)


def read(path: Path, device: torch.device) -> tuple[dict[str, str], dict[str, Tensor]]:
    """Return a checkpoint's metadata and tensors."""
    with safe_open(path, framework="pt", device=str(device)) as file:
        return file.metadata() or {}, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
