"""The tensors of a fairseq `fconv` model -> ours: names, order of ids, both weight norms."""

import re
from collections.abc import Mapping

import torch
from torch import Tensor

# fairseq's ids 0 to 3 are start, padding, EOS and unknown; ours are padding, EOS, unknown (T20). The start
# symbol, which neither uses, goes last, so that the softmax is over the same entries.
SPECIALS = 4
# Buffers of fairseq that hold no weights: versions, products of weight norm, and positions' device.
IGNORED = re.compile(r".*(\.version|\._linearized_weight|\._float_tensor)")
WRAPPED = {
    r"^.*?(?=(encoder|decoder)\.)": "",
    r"\.parametrizations\.weight\.original0$": ".weight_g",
    r"\.parametrizations\.weight\.original1$": ".weight_v",
}
"""What wrappers (module., _orig_mod.) and PyTorch since 2.0 make of fairseq's names, as patterns."""
OURS = {
    r"encoder\.embed_tokens": "source_embedding.words",
    r"decoder\.embed_tokens": "target_embedding.words",
    r"encoder\.embed_positions": "source_embedding.positions",
    r"decoder\.embed_positions": "target_embedding.positions",
    r"(encoder|decoder)\.fc1": r"\1.input_map",
    r"(encoder|decoder)\.fc2": r"\1.output_map",
    r"(encoder|decoder)\.convolutions\.(\d+)": r"\1.blocks.\2.convolution.window_map",
    r"(encoder|decoder)\.projections\.(\d+)": r"\1.blocks.\2.residual.map",
    r"decoder\.attention\.(\d+)\.in_projection": r"decoder.blocks.\1.attention.summary_map",
    r"decoder\.attention\.(\d+)\.out_projection": r"decoder.blocks.\1.attention.context_map",
    r"decoder\.fc3": "output_layer",
}
"""Our name of each module, by the pattern of fairseq's."""


def order_ids(size: int) -> Tensor:
    """Return fairseq's ids in our order, for a dictionary of this size."""
    return torch.tensor([1, 2, 3, *range(SPECIALS, size), 0])


def convert_weights(tensors: Mapping[str, Tensor], max_positions: int) -> dict[str, Tensor]:
    """Return the weights of our model, weight norm folded in; tensors of other models keep their names."""
    ours: dict[str, Tensor] = {}
    tensors = {unwrap(name): tensor for name, tensor in tensors.items()}
    for their_name, tensor in tensors.items():
        if IGNORED.fullmatch(their_name) or their_name.endswith(".weight_g"):
            continue
        name = rename(their_name)
        if name.endswith(".weight_v"):
            weight = fold_norm(tensors[f"{their_name.removesuffix('v')}g"], tensor)
            name = name.removesuffix("_v")
        else:
            weight = tensor.float()
        if ".positions." in name:
            # fairseq's first position is row 2, ours row 1 (T18); row 0 is for padding.
            rows = weight[2 : max_positions + 1]
            weight = torch.cat([torch.zeros_like(rows[:1]), rows])
        elif ".words." in name or name.startswith("output_layer."):
            weight = weight[order_ids(len(weight))]
        ours[name] = weight
    return ours


def unwrap(name: str) -> str:
    """Return fairseq's name of a tensor."""
    for pattern, plain in WRAPPED.items():
        name = re.sub(pattern, plain, name)
    return name


def rename(name: str) -> str:
    """Return our name of a tensor of fairseq; one that an fconv model lacks keeps its name."""
    module, _, tensor = name.rpartition(".")
    for pattern, ours in OURS.items():
        if match := re.fullmatch(pattern, module):
            return f"{match.expand(ours)}.{tensor}"
    return name


def fold_norm(g: Tensor, v: Tensor) -> Tensor:
    """Return a weight g v / ||v|| as (outputs, inputs), or (outputs, K * inputs) for a convolution.

    The norm is over the dimensions in which g has size 1: in the checkpoints of 2017 a decoder's convolution
    has a norm per kernel position instead of one per output channel (T17).

    Args:
        g: (outputs, 1) of a linear map; (1, 1, outputs), or (K, 1, 1) in 2017, of a convolution.
        v: (outputs, inputs) of a linear map; (K, inputs, outputs) of a convolution.
    """
    g, v = g.double(), v.double()
    dimensions = [dimension for dimension, size in enumerate(g.shape) if size == 1]
    weight: Tensor = g * v / torch.linalg.vector_norm(v, dim=dimensions, keepdim=True)
    return (weight.permute(2, 0, 1).flatten(1) if weight.ndim == 3 else weight).float().contiguous()
