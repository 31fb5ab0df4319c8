"""Initial weights (§3.5, App. A) and the weight-normalized layers that carry them (§4.2).

All layers except lookup tables are weight-normalized per output channel: w = g v / ||v||, where g
starts at ||v||, so that w = v at the start.
"""

import math
import re
from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize
from torch.nn.utils.parametrizations import weight_norm

EMBEDDING_STD = 0.1
PARTS = re.compile(r"parametrizations\.weight\.original[01]$")
"""The end of the names that g and v of a weight have in PyTorch's state."""


def linear_std(inputs: int, keep: float, before_glu: bool) -> float:
    """Return the standard deviation of initial weights: sqrt(p/n), or sqrt(4p/n) before a GLU (§3.5).

    Args:
        inputs: n, input connections of each unit; kernel width times channels for a convolution.
        keep: p, the probability that dropout keeps an input of this layer; 1 without dropout.
        before_glu: whether a gated linear unit, which quarters the variance, takes the output.
    """
    return math.sqrt((4.0 if before_glu else 1.0) * keep / inputs)


def linear(inputs: int, outputs: int, *, keep: float = 1.0, before_glu: bool = False) -> nn.Linear:
    """Make a weight-normalized linear map with the paper's initial weights and zero biases (§3.5)."""
    layer = nn.Linear(inputs, outputs)
    nn.init.normal_(layer.weight, 0.0, linear_std(inputs, keep, before_glu))
    nn.init.zeros_(layer.bias)
    weight_norm(layer, dim=0)
    return layer


def output_table(inputs: int, outputs: int) -> nn.Linear:
    """Make an output layer for vocabulary selection: a lookup table with the bias as a column (T16).

    Drawn from N(0, 0.1), without weight norm, so that picking rows does not touch the others.
    """
    layer = nn.Linear(inputs, outputs)
    nn.init.normal_(layer.weight, 0.0, EMBEDDING_STD)
    nn.init.normal_(layer.bias, 0.0, EMBEDDING_STD)
    return layer


def lookup_table(rows: int, channels: int, padding_row: int) -> nn.Embedding:
    """Make a lookup table, drawn from N(0, 0.1); the padding row is and stays zero (§3.5, T18)."""
    table = nn.Embedding(rows, channels, padding_idx=padding_row)
    nn.init.normal_(table.weight, 0.0, EMBEDDING_STD)
    with torch.no_grad():
        table.weight[padding_row].zero_()
    return table


def fold_weight_norm(model: nn.Module) -> None:
    """Replace g and v with the weight they represent, in place: the same function, but faster."""
    for module in model.modules():
        if parametrize.is_parametrized(module, "weight"):
            parametrize.remove_parametrizations(module, "weight", leave_parametrized=True)


def folded_weights(model: nn.Module) -> dict[str, Tensor]:
    """Return parameters and persistent buffers by name, with g and v replaced by the weight they represent.

    Tied weights are there under each of their names.
    """
    weights: dict[str, Tensor] = {}
    for name, value in model.state_dict().items():
        folded = PARTS.sub("weight", name)
        if folded not in weights:
            path, _, attribute = folded.rpartition(".")
            weight = value if folded == name else getattr(model.get_submodule(path), attribute)
            weights[folded] = weight.detach().contiguous()
    return weights


@torch.no_grad()
def unfold_weights(model: nn.Module, weights: Mapping[str, Tensor]) -> None:
    """Set what `folded_weights` returns, by name; with weight norm, v = w and g = ||v||."""
    for name in folded_weights(model):
        path, _, attribute = name.rpartition(".")
        module = model.get_submodule(path)
        value = weights[name].to(getattr(module, attribute).device, copy=True)
        if parametrize.is_parametrized(module, attribute):
            setattr(module, attribute, value)  # inverts the weight norm
        else:
            getattr(module, attribute).copy_(value)
