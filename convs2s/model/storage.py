"""A trained model on disk: weights.safetensors and model.json; no pickle, so nothing is executed."""

import json
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import nn

from convs2s.config.model import ModelParams
from convs2s.config.older import with_added_keys
from convs2s.model.initialization import folded_weights
from convs2s.model.seq2seq import Seq2Seq
from convs2s.model.unfilled import unfilled_model


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
    """Write the weights, weight norm folded in, and what is needed to rebuild the model."""
    folder.mkdir(parents=True, exist_ok=True)
    weights = {name: tensor.cpu().float() for name, tensor in folded_weights(model).items()}
    write_tensors(folder / "weights.safetensors", weights)
    description = {
        "architecture": params.model_dump(),
        "source_size": source_size,
        "target_size": target_size,
        "padding_id": padding_id,
    }
    (folder / "model.json").write_text(json.dumps(description, indent=2) + "\n", encoding="utf-8")


def load_model(folder: Path, device: torch.device | str = "cpu") -> Seq2Seq:
    """Read a model for translation: in eval mode, weight norm folded in.

    Raises:
        FileNotFoundError: if a file of the model is missing.
        ValueError: if a file is damaged, or weights and model.json do not match; the message lists how.
    """
    for name in ("model.json", "weights.safetensors"):
        if not (folder / name).is_file():
            raise FileNotFoundError(
                f"{folder / name} does not exist. Wanted a model folder with model.json and "
                "weights.safetensors, as the stages train and package write."
            )
    try:
        description = json.loads((folder / "model.json").read_text(encoding="utf-8"))
        params = ModelParams.model_validate(with_added_keys("model", description["architecture"]))
        sizes = [int(description[key]) for key in ("source_size", "target_size", "padding_id")]
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{folder / 'model.json'} does not describe a model: {error}") from error
    try:
        weights = load_file(folder / "weights.safetensors")
    except (SafetensorError, OSError) as error:
        raise ValueError(
            f"{folder / 'weights.safetensors'} is damaged or no safetensors file: {error}. "
            "Train or fetch it again."
        ) from error
    model = unfilled_model(params, sizes[0], sizes[1], sizes[2])
    check_fit(model, weights, folder / "weights.safetensors")
    model.load_state_dict(weights, assign=True)
    return model.to(device).eval().requires_grad_(False)


def check_fit(model: nn.Module, weights: dict[str, torch.Tensor], origin: Path) -> None:
    """Compare names and shapes of weights with those of a model.

    Raises:
        ValueError: if they differ, naming up to five tensors with both shapes.
    """
    wanted = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    found = {name: tuple(tensor.shape) for name, tensor in weights.items()}
    faults = [
        f"  {name}: found {found.get(name, 'nothing')}, wanted {wanted.get(name, 'nothing')}"
        for name in sorted(wanted.keys() | found.keys())
        if wanted.get(name) != found.get(name)
    ]
    if faults:
        more = f"\n  and {len(faults) - 5} more" if len(faults) > 5 else ""
        raise ValueError(
            f"{origin} does not fit the model it is loaded into:\n"
            + "\n".join(faults[:5])
            + more
            + "\nWas it made with other values of the section `model`, or another vocabulary?"
        )
