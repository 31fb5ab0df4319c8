"""The tensors of a fairseq `fconv` model -> ours: names, shapes, order of ids, both weight norms."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from convs2s.config.model import ModelParams

# fairseq's ids 0 to 3 are start, padding, EOS and unknown; ours are padding, EOS, unknown (T20). The start
# symbol, which neither uses, goes last, so that the softmax is over the same entries.
SPECIALS = 4
# A lower version, or none, is from 2017, when decoder convolutions were normalized per kernel position.
PER_CHANNEL_VERSION = 2
# Buffers of fairseq that hold no weights: versions, products of weight norm, and positions' device.
IGNORED = re.compile(r".*(\.version|\._linearized_weight|\._float_tensor)")
RENAMED = {
    ".parametrizations.weight.original0": ".weight_g",
    ".parametrizations.weight.original1": ".weight_v",
}
"""PyTorch's names of weight norm since 2.0."""

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Layer:
    """A linear map or convolution, with both its names.

    Attributes:
        theirs: prefix of fairseq's tensors.
        ours: prefix of ours.
        shape: of fairseq's weight: (outputs, inputs), or (K, inputs, outputs) for a convolution.
        norm: shape of weight norm's g; None for a weight without weight norm.
    """

    theirs: str
    ours: str
    shape: Shape
    norm: Shape | None


@dataclass(frozen=True)
class Fconv:
    """The facts that determine the tensors of an fconv model.

    Attributes:
        params: the architecture.
        sizes: of the source and the target dictionary, the four special symbols included.
        old_norm: whether decoder convolutions are normalized per kernel position.
        tied_output: whether the output layer's weight is the target embedding, without weight norm.
        positions: rows of the source and the target position table.
    """

    params: ModelParams
    sizes: tuple[int, int]
    old_norm: bool
    tied_output: bool
    positions: tuple[int, int]


def has_old_norm(tensors: Mapping[str, Tensor]) -> bool:
    """Return whether decoder convolutions are normalized over the wrong dimension, as in 2017 (T17).

    Such a checkpoint has no version or a low one, and a g per kernel position. If it has a g per channel
    instead, only its version was lost, because the shape cannot mean anything else.
    """
    version = tensors.get("decoder.version")
    if version is not None and float(version.flatten()[0]) >= PER_CHANNEL_VERSION:
        return False
    names = [name for name in tensors if re.fullmatch(r"decoder\.convolutions\.\d+\.weight_g", name)]
    return any(tensors[name].shape[-1:] == (1,) for name in names)


def unwrap_names(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return tensors by fairseq's names, without what wrappers put before them (module., _orig_mod.)."""
    renamed = dict[str, Tensor]()
    for name, tensor in tensors.items():
        plain = re.sub(r"^.*?(?=(?:encoder|decoder)\.)", "", name)
        norm = next((theirs for theirs in RENAMED if plain.endswith(theirs)), "")
        renamed[plain.removesuffix(norm) + RENAMED.get(norm, "")] = tensor
    return renamed


def order_ids(size: int) -> Tensor:
    """Return fairseq's ids in our order, for a dictionary of this size."""
    return torch.tensor([1, 2, 3, *range(SPECIALS, size), 0])


def list_layers(model: Fconv) -> Iterator[Layer]:
    """Yield all linear maps and convolutions."""
    p, size = model.params, model.params.embedding_size
    for half, widths, kernels, output in (
        ("encoder", p.encoder_widths, p.encoder_kernels, size),
        ("decoder", p.decoder_widths, p.decoder_kernels, p.output_embedding_size),
    ):
        yield linear(f"{half}.fc1", f"{half}.input_map", size, widths[0])
        yield linear(f"{half}.fc2", f"{half}.output_map", widths[-1], output)
        for i, (c, d, k) in enumerate(zip([widths[0], *widths[:-1]], widths, kernels, strict=True)):
            block = f"{half}.blocks.{i}"
            norm = (k, 1, 1) if half == "decoder" and model.old_norm else (1, 1, 2 * d)
            name = f"{half}.convolutions.{i}"
            yield Layer(name, f"{block}.convolution.window_map", (k, c, 2 * d), norm)
            if c != d:
                yield linear(f"{half}.projections.{i}", f"{block}.residual.map", c, d)
            if half == "decoder" and p.attention[i]:
                name = f"{half}.attention.{i}"
                yield linear(f"{name}.in_projection", f"{block}.attention.summary_map", d, size)
                yield linear(f"{name}.out_projection", f"{block}.attention.context_map", size, d)
    shape = (model.sizes[1], p.output_embedding_size)
    yield Layer("decoder.fc3", "output_layer", shape, None if model.tied_output else (shape[0], 1))


def linear(theirs: str, ours: str, inputs: int, outputs: int) -> Layer:
    """Return a weight-normalized linear map."""
    return Layer(theirs, ours, (outputs, inputs), (outputs, 1))


def expected_shapes(model: Fconv) -> dict[str, Shape]:
    """Return the shape of every tensor that fairseq saves for such a model."""
    size = model.params.embedding_size
    shapes: dict[str, Shape] = {}
    for half, entries, rows in zip(("encoder", "decoder"), model.sizes, model.positions, strict=True):
        shapes[f"{half}.embed_tokens.weight"] = (entries, size)
        shapes[f"{half}.embed_positions.weight"] = (rows, size)
    for layer in list_layers(model):
        shapes[f"{layer.theirs}.weight" if layer.norm is None else f"{layer.theirs}.weight_v"] = layer.shape
        if layer.norm is not None:
            shapes[f"{layer.theirs}.weight_g"] = layer.norm
        shapes[f"{layer.theirs}.bias"] = (layer.shape[-1 if len(layer.shape) == 3 else 0],)
    return shapes


def compare_shapes(tensors: Mapping[str, Tensor], model: Fconv) -> list[str]:
    """Return a line for every tensor that is missing, unknown or of another shape; empty if all fit."""
    expected = expected_shapes(model)
    shapes = {name: tuple(tensor.shape) for name, tensor in tensors.items() if not IGNORED.fullmatch(name)}
    return [
        f"{name}: expected {expected.get(name, 'nothing')}, found {shapes.get(name, 'nothing')}"
        for name in sorted(expected.keys() | shapes.keys())
        if shapes.get(name) != expected.get(name)
    ]


def convert_weights(tensors: Mapping[str, Tensor], model: Fconv) -> dict[str, Tensor]:
    """Return the weights of our model, weight norm folded in; all tensors must fit."""
    ours: dict[str, Tensor] = {}
    for half, side, size in zip(("encoder", "decoder"), ("source", "target"), model.sizes, strict=True):
        words = tensors[f"{half}.embed_tokens.weight"].float()
        ours[f"{side}_embedding.words.weight"] = words[order_ids(size)]
        # fairseq's first position is row 2, ours row 1 (T18); row 0 is for padding.
        positions = tensors[f"{half}.embed_positions.weight"].float()
        rows = positions[2 : model.params.max_positions + 1]
        ours[f"{side}_embedding.positions.weight"] = torch.cat([torch.zeros_like(rows[:1]), rows])
    for layer in list_layers(model):
        ours[f"{layer.ours}.weight"] = fold_norm(tensors, layer)
        ours[f"{layer.ours}.bias"] = tensors[f"{layer.theirs}.bias"].float()
    for name in ("output_layer.weight", "output_layer.bias"):
        ours[name] = ours[name][order_ids(model.sizes[1])]
    return ours


def fold_norm(tensors: Mapping[str, Tensor], layer: Layer) -> Tensor:
    """Return a layer's weight g v / ||v|| as (outputs, inputs), or (outputs, K * inputs) for a convolution.

    In both versions of weight norm, the norm is over the dimensions in which g has size 1.
    """
    if layer.norm is None:
        return tensors[f"{layer.theirs}.weight"].float()
    g, v = (tensors[f"{layer.theirs}.weight_{part}"].double() for part in "gv")
    dimensions = [dimension for dimension, size in enumerate(g.shape) if size == 1]
    weight: Tensor = g * v / torch.linalg.vector_norm(v, dim=dimensions, keepdim=True)
    return (weight.permute(2, 0, 1).flatten(1) if weight.ndim == 3 else weight).float().contiguous()
