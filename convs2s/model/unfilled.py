"""A model without weights, to be filled from a file."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from convs2s.config.model import ModelParams
from convs2s.model.initialization import fold_weight_norm
from convs2s.model.seq2seq import Seq2Seq


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


def unfilled_model(params: ModelParams, source_size: int, target_size: int, padding_id: int) -> Seq2Seq:
    """Return a model for translation whose weights, with weight norm folded in, take no memory yet.

    Fill it with `load_state_dict(weights, assign=True)`.
    """
    with torch.device("meta"), ShapesOnly():
        model = Seq2Seq(params, source_size, target_size, padding_id, dropout=0.0)
        fold_weight_norm(model)
    return model
