"""Load a trained model from disk for use; `storage` writes it."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch.overrides import TorchFunctionMode

from convs2s.config.model import ModelParams
from convs2s.model.description import read_description
from convs2s.model.digests import check_files
from convs2s.model.initialization import fold_weight_norm
from convs2s.model.seq2seq import Seq2Seq
from convs2s.model.storage import check_fit


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
    model = build_unfilled(
        description.architecture, description.source_size, description.target_size, description.padding_id
    )
    check_fit(model, weights, folder / "weights.safetensors")
    model.load_state_dict(weights, assign=True)
    return model.to(device).eval().requires_grad_(False)


class ShapesOnly(TorchFunctionMode):
    """Skips initialization and weight norm, keeping only shapes.

    On the meta device, PyTorch would compute both in Python and import its compiler for that, which takes a
    second before anything is translated.
    """

    def __torch_function__(
        self,
        function: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        if getattr(function, "__module__", None) == "torch.nn.init":
            return kwargs["tensor"] if kwargs and "tensor" in kwargs else args[0]
        if function is torch.norm_except_dim:
            return torch.empty(())  # g, which folding removes
        if function is torch._weight_norm:
            return args[0]
        return function(*args, **(kwargs or {}))


def build_unfilled(params: ModelParams, source_size: int, target_size: int, padding_id: int) -> Seq2Seq:
    """Return a model for translation whose weights, with weight norm folded in, take no memory yet.

    Fill it with `load_state_dict(weights, assign=True)`.
    """
    with torch.device("meta"), ShapesOnly():
        model = Seq2Seq(params, source_size, target_size, padding_id, dropout=0.0)
        fold_weight_norm(model)
    return model
