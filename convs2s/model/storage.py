"""A trained model on disk: weights.safetensors and model.json; no pickle, so nothing is executed."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch.overrides import TorchFunctionMode

from convs2s.config.format import format_of
from convs2s.config.model import ModelParams
from convs2s.model.description import DESCRIPTION, WEIGHTS, check_files, read_description, seal
from convs2s.model.initialization import fold_weight_norm, folded_weights, unfold_weights
from convs2s.model.seq2seq import Seq2Seq


def write_tensors(
    path: Path, tensors: dict[str, torch.Tensor], metadata: dict[str, str] | None = None
) -> None:
    """Write a safetensors file; raise OSError if that fails, for instance because the disk is full."""
    try:
        save_file(tensors, path, metadata)
    except SafetensorError as error:
        raise OSError(
            f"{path} cannot be written: {error}. Is the disk full? Nothing was left half-written."
        ) from error


def save_model(folder: Path, model: Seq2Seq, params: ModelParams) -> None:
    """Write the weights, with weight norm folded in, and a model.json to rebuild the model, with digests."""
    folder.mkdir(parents=True, exist_ok=True)
    # Tied weights are written under both names, so that a reader need not know that they are tied.
    weights = {name: tensor.cpu().clone() for name, tensor in folded_weights(model).items()}
    weights = {name: w.float() if w.is_floating_point() else w for name, w in weights.items()}
    write_tensors(folder / WEIGHTS, weights)
    description = {
        "architecture": params.model_dump(exclude_defaults=True),
        "source_size": model.source_embedding.words.num_embeddings,
        "target_size": model.target_embedding.words.num_embeddings,
        "padding_id": model.padding_id,
    }
    (folder / DESCRIPTION).write_text(json.dumps(description), encoding="utf-8")
    seal(folder, format_of(params))


def load_model(folder: Path, device: torch.device | str = "cpu") -> Seq2Seq:
    """Read a model for translation: in eval mode, weight norm folded in.

    Raises:
        FileNotFoundError: if a file of the model is missing.
        ValueError: if a file is damaged or has changed since it was written, or weights and model.json do not
            match; the message lists the differences.
    """
    description = read_description(folder)
    check_files(folder, description.files, [WEIGHTS])
    try:
        weights = load_file(folder / WEIGHTS)
    except (SafetensorError, OSError) as error:
        raise ValueError(
            f"{folder / WEIGHTS} is damaged or not a safetensors file: {error}. Train or fetch it again."
        ) from error
    model = build_unfilled(
        description.architecture, description.source_size, description.target_size, description.padding_id
    )
    check_fit(model.state_dict(), weights, folder / WEIGHTS)
    model.load_state_dict(weights, assign=True)
    return model.to(device).eval().requires_grad_(False)


def load_start(folder: Path, model: Seq2Seq) -> None:
    """Fill a model that is to be trained with the weights of a model folder."""
    weights = load_model(folder).state_dict()
    check_fit(folded_weights(model), weights, folder / WEIGHTS)
    unfold_weights(model, weights)
    lost = [
        name for name, folded in folded_weights(model).items() if not folded.cpu().allclose(weights[name])
    ]
    if lost:
        raise ValueError(
            f"{folder / WEIGHTS} does not fit train.tied_embeddings: expected {', '.join(lost)} to equal the "
            "table that it is tied to, found another. Start from a model with tied embeddings, or set it to "
            "false."
        )


def check_fit(own: Mapping[str, torch.Tensor], weights: Mapping[str, torch.Tensor], origin: Path) -> None:
    """Raise ValueError, with five differences, unless weights have a model's names, shapes and types."""
    expected = {name: f"{tuple(tensor.shape)} {tensor.dtype}" for name, tensor in own.items()}
    stored = {name: f"{tuple(tensor.shape)} {tensor.dtype}" for name, tensor in weights.items()}
    faults = [
        f"  {name}: expected {expected.get(name, 'nothing')}, found {stored.get(name, 'nothing')}"
        for name in sorted(expected.keys() | stored.keys())
        if expected.get(name) != stored.get(name)
    ]
    if faults:
        raise ValueError(
            f"{origin} does not fit the model it is loaded into:\n"
            + "\n".join(faults[:5])
            + "\nWas it made with different values in the section `model`, or a different vocabulary?"
        )


class ShapesOnly(TorchFunctionMode):
    """Makes layers whose weights have shapes but no numbers yet: skips initialization and weight norm.

    Under `torch.device("meta")`, PyTorch would compute both in Python and import its compiler for that, which
    takes a second before anything is translated; and what a constructor computes, such as a table of sines,
    would have no numbers either.
    """

    def __torch_function__(
        self,
        function: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        if function is torch.empty and kwargs and "device" in kwargs:  # PyTorch's layers pass it on
            return torch.empty(*args, **{**kwargs, "device": "meta"})
        if getattr(function, "__module__", None) == "torch.nn.init":
            return kwargs["tensor"] if kwargs and "tensor" in kwargs else args[0]
        if function is torch.norm_except_dim:
            return args[0].new_empty(len(args[0]), *[1] * (args[0].dim() - 1))  # g of each row
        if function is torch._weight_norm:
            return args[0]
        return function(*args, **(kwargs or {}))


def build_unfilled(params: ModelParams, source_size: int, target_size: int, padding_id: int) -> Seq2Seq:
    """Return a model for translation whose weights, with weight norm folded in, take no memory yet.

    Fill it with `load_state_dict(weights, assign=True)`.
    """
    with ShapesOnly():
        model = Seq2Seq(params, source_size, target_size, padding_id, dropout=0.0)
        fold_weight_norm(model)
    return model
