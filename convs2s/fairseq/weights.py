"""The tensors of a fairseq `fconv` model -> ours: names, order of ids, both weight norms."""

import math
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
    """Return the weights of our model, weight norm folded in; tensors of other models keep their names.

    Raises:
        ValueError: if two tensors have one name, or a tensor has no partner or an impossible shape or value.
    """
    ours: dict[str, Tensor] = {}
    origins: dict[str, str] = {}
    names = unwrap_names(tensors)
    norms = {name for name in names if name.endswith(".weight_g")}
    for their_name, full_name in names.items():
        if IGNORED.fullmatch(their_name) or their_name in norms:
            continue
        name = rename(their_name)
        tensor = tensors[full_name]
        if name.endswith(".weight_v"):
            norm = f"{their_name.removesuffix('v')}g"
            if norm not in norms:
                raise ValueError(f"expected a tensor {norm} for {full_name}, found none")
            norms.remove(norm)
            name = name.removesuffix("_v")
            weight = fold_norm(tensors[names[norm]], tensor, full_name)
        else:
            weight = tensor.float()
        if ".positions." in name:
            # fairseq's first position is row 2, ours row 1 (T18); row 0 is for padding.
            rows = take_rows(weight, full_name)[2 : max_positions + 1]
            weight = torch.cat([torch.zeros_like(rows[:1]), rows])
        elif ".words." in name or name.startswith("output_layer."):
            weight = take_rows(weight, full_name)[order_ids(len(weight))]
        if not (tensor.is_floating_point() and weight.isfinite().all()):
            raise ValueError(
                f"expected finite floating-point numbers in {full_name}, found others: has training diverged?"
            )
        if name in ours:
            raise ValueError(f"expected one tensor for each weight, found {origins[name]} and {full_name}")
        ours[name] = weight
        origins[name] = full_name
    if norms:
        raise ValueError(f"expected a weight_v for {names[min(norms)]}, found none")
    return ours


def take_rows(weight: Tensor, name: str) -> Tensor:
    """Return a tensor with rows for the special symbols; raise ValueError for another."""
    if weight.ndim < 1 or len(weight) < SPECIALS:
        shape = tuple(weight.shape)
        raise ValueError(f"expected at least {SPECIALS} rows in {name}, found the shape {shape}")
    return weight


def unwrap_names(tensors: Mapping[str, Tensor]) -> dict[str, str]:
    """Return the name of each tensor by fairseq's; raise ValueError if two have the same."""
    names: dict[str, str] = {}
    for full_name in tensors:
        name = unwrap(full_name)
        if name in names:
            raise ValueError(f"expected one tensor for each name, found {names[name]} and {full_name}")
        names[name] = full_name
    return names


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


def fold_norm(g: Tensor, v: Tensor, name: str = "weight_v") -> Tensor:
    """Return a weight g v / ||v|| as (outputs, inputs), or (outputs, K * inputs) for a convolution.

    The norm is over the dimensions in which g has size 1: in the checkpoints of 2017 a decoder's convolution
    has a norm per kernel position instead of one per output channel (T17).

    Args:
        g: (outputs, 1) of a linear map; (1, 1, outputs), or (K, 1, 1) in 2017, of a convolution.
        v: (outputs, inputs) of a linear map; (K, inputs, outputs) of a convolution.
        name: of v, for messages.
    """
    sizes = [size for size, whole in zip(g.shape, v.shape, strict=False) if size == whole != 1]
    if g.ndim != v.ndim or v.ndim not in (2, 3) or len(sizes) > 1 or g.numel() != math.prod(sizes):
        raise ValueError(
            f"expected one norm for each output or position of {name}, found norms of shape "
            f"{tuple(g.shape)} for {tuple(v.shape)}"
        )
    g, v = g.double(), v.double()
    dimensions = [dimension for dimension, size in enumerate(g.shape) if size == 1]
    weight: Tensor = g * v / torch.linalg.vector_norm(v, dim=dimensions, keepdim=True)
    return (weight.permute(2, 0, 1).flatten(1) if weight.ndim == 3 else weight).float().contiguous()
