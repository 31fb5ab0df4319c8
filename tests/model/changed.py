"""A model with what people may add to it: parameters of its own, norms, a table that it computes."""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from convs2s.model.decoder import DecoderState
from convs2s.model.multistep_attention import Memory
from convs2s.model.seq2seq import Seq2Seq


class ChangedSeq2Seq(Seq2Seq):
    """The decoder's output gets sinusoidal positions, a layer norm, a learned scale and a batch norm."""

    sines: Tensor

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        size = self.output_layer.in_features
        self.scale = nn.Parameter(torch.full((size,), 0.5))
        self.layer_norm = nn.LayerNorm(size)
        self.batch_norm = nn.BatchNorm1d(size)
        self.register_buffer("sines", make_sines(64, size), persistent=False)

    def features(
        self, target_input: Int[Tensor, "R T"], memory: Memory, state: DecoderState | None = None
    ) -> tuple[Float[Tensor, "R T F"], list[Float[Tensor, "R T S"]], DecoderState | None]:
        x, attention, following = super().features(target_input, memory, state)
        before = state.steps if state else 0
        x = self.layer_norm(x + self.sines[before : before + x.shape[1]]) * self.scale
        return self.batch_norm(x.transpose(1, 2)).transpose(1, 2), attention, following


def make_sines(rows: int, size: int) -> Tensor:
    """Return a table of sines and cosines of positions."""
    angles = torch.arange(rows)[:, None] / 1000 ** (torch.arange(0, size, 2) / size)
    table = torch.empty(rows, size)
    table[:, 0::2] = angles.sin()
    table[:, 1::2] = angles.cos()
    return table


def make_odd(model: nn.Module) -> None:
    """Change all parameters and buffers that a model keeps by formula, as training would."""
    with torch.no_grad():
        for number, tensor in enumerate(model.state_dict().values()):
            if tensor.is_floating_point():
                tensor.add_(0.01 * torch.arange(tensor.numel()).sin().view_as(tensor).abs() + 0.001 * number)
            else:
                tensor.add_(7)
