"""A trained model on disk: weights.safetensors and model.json; no pickle, so nothing is executed."""

import json
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import nn

from convs2s.config.model import ModelParams
from convs2s.model.digests import seal
from convs2s.model.initialization import folded_weights


def write_tensors(
    path: Path, tensors: dict[str, torch.Tensor], metadata: dict[str, str] | None = None
) -> None:
    """Write a safetensors file.

    Raises:
        OSError: if it cannot be written, for instance because the disk is full.
    """
    try:
        save_file(tensors, path, metadata)
    except SafetensorError as error:
        raise OSError(
            f"{path} cannot be written: {error}. Is the disk full? Nothing was left half-written."
        ) from error


def save_model(
    folder: Path, model: nn.Module, params: ModelParams, source_size: int, target_size: int, padding_id: int
) -> None:
    """Write the weights, with weight norm folded in, and a model.json to rebuild the model, with digests."""
    folder.mkdir(parents=True, exist_ok=True)
    weights = {name: tensor.cpu().float() for name, tensor in folded_weights(model).items()}
    write_tensors(folder / "weights.safetensors", weights)
    description = {
        "architecture": params.model_dump(),
        "source_size": source_size,
        "target_size": target_size,
        "padding_id": padding_id,
    }
    (folder / "model.json").write_text(json.dumps(description), encoding="utf-8")
    seal(folder)


def check_fit(model: nn.Module, weights: dict[str, torch.Tensor], origin: Path) -> None:
    """Compare names, shapes and types of weights with those of a model.

    Raises:
        ValueError: if they differ, naming up to five tensors with both shapes and types.
    """
    expected = {name: f"{tuple(tensor.shape)} {tensor.dtype}" for name, tensor in model.state_dict().items()}
    found = {name: f"{tuple(tensor.shape)} {tensor.dtype}" for name, tensor in weights.items()}
    faults = [
        f"  {name}: expected {expected.get(name, 'nothing')}, found {found.get(name, 'nothing')}"
        for name in sorted(expected.keys() | found.keys())
        if expected.get(name) != found.get(name)
    ]
    if faults:
        more = f"\n  and {len(faults) - 5} more" if len(faults) > 5 else ""
        raise ValueError(
            f"{origin} does not fit the model it is loaded into:\n"
            + "\n".join(faults[:5])
            + more
            + "\nWas it made with different values in the section `model`, or a different vocabulary?"
        )
