"""Load a trained model from disk for use; `storage` writes it."""

from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

from convs2s.model.description import read_description
from convs2s.model.digests import check_files
from convs2s.model.seq2seq import Seq2Seq
from convs2s.model.storage import check_fit
from convs2s.model.unfilled import unfilled_model


def load_model(folder: Path, device: torch.device | str = "cpu") -> Seq2Seq:
    """Read a model for translation: in eval mode, weight norm folded in.

    Raises:
        FileNotFoundError: if a file of the model is missing.
        ValueError: if a file is damaged or has changed since it was written, or weights and model.json do not
            match; the message lists the differences.
    """
    for name in ("model.json", "weights.safetensors"):
        if not (folder / name).is_file():
            raise FileNotFoundError(
                f"{folder / name} does not exist. Expected a model folder with model.json and "
                "weights.safetensors, as written by the stages train and package."
            )
    description = read_description(folder)
    check_files(folder, description.files, ["weights.safetensors"])
    try:
        weights = load_file(folder / "weights.safetensors")
    except (SafetensorError, OSError) as error:
        raise ValueError(
            f"{folder / 'weights.safetensors'} is damaged or not a safetensors file: {error}. "
            "Train or fetch it again."
        ) from error
    model = unfilled_model(
        description.architecture, description.source_size, description.target_size, description.padding_id
    )
    check_fit(model, weights, folder / "weights.safetensors")
    model.load_state_dict(weights, assign=True)
    return model.to(device).eval().requires_grad_(False)
