"""The weights of an update: normalized, scaled and cast once, however many parts the batch has (§4.2).

Weights do not change between the parts of a batch, so each weight-normalized map computes its weight only
once, when the first part needs it. With one part, the gradient flows on to v and g immediately, and workers
exchange it while backward continues in the layers below. With several parts, gradients are summed in float32
and passed on after the last part.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial

import torch
from torch import Tensor, nn

from convs2s.train.fast.gpu_layers import GpuLinear
from convs2s.train.fast.linear import FastLinear, G, V, Values, normalized_weight


@contextmanager
def weights_of_update(model: nn.Module, dtype: torch.dtype, parts: int) -> Iterator[None]:
    """Make the fast layers share weights between parts; on exit, pass all gradients on to the parameters.

    Args:
        dtype: of products.
        parts: passes whose gradients are summed.
    """
    groups = [SharedWeights(layers, dtype, parts) for layers in grouped(model)]
    for group in groups:
        for i, layer in enumerate(group.layers):
            layer.shared = partial(group.of, i)
    try:
        yield
    finally:
        for group in groups:
            for layer in group.layers:
                layer.shared = None
    passed_on = [pair for group in groups for pair in group.gradients()]
    if passed_on:
        torch.autograd.backward([value for value, _ in passed_on], [gradient for _, gradient in passed_on])


def grouped(model: nn.Module) -> list[Sequence[FastLinear | GpuLinear]]:
    """Return the groups of layers whose weights are computed together.

    On a CPU, each layer is a group. On a GPU, the encoder, the decoder and the output layer are a group each,
    because backward reaches them one after another.
    """
    alone, together = [], defaultdict(list)
    for name, layer in model.named_modules():
        if isinstance(layer, FastLinear):
            alone.append([layer])
        elif isinstance(layer, GpuLinear):
            together[name.partition(".")[0]].append(layer)
    return [*alone, *together.values()]


class SharedWeights:
    """Weights of some layers, the same for all parts of a batch; computed when the first is needed.

    Not earlier, because backward runs in the reverse order of forward: it would reach them too late.
    """

    def __init__(self, layers: Sequence[FastLinear | GpuLinear], dtype: torch.dtype, parts: int) -> None:
        self.layers, self.dtype, self.parts = layers, dtype, parts
        self.values: list[Values] = []
        self.leaves: list[Values] = []

    def of(self, number: int) -> Values:
        """Return the values that the forward pass of layer `number` reads."""
        if not self.values:
            self.values = compute_values(self.layers, self.dtype)
            self.leaves = self.values
            if self.parts > 1:
                self.leaves = [
                    {name: leaf(value) for name, value in values.items()} for values in self.values
                ]
        return self.leaves[number]

    def gradients(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield each value whose gradient has not yet reached the parameters, with that gradient."""
        if self.parts == 1:
            return
        for values, leaves in zip(self.values, self.leaves, strict=True):
            for name, value in values.items():
                gradient = leaves[name].grad
                if gradient is not None:
                    yield value, gradient.to(value.dtype)


def leaf(value: Tensor) -> Tensor:
    """Return the same memory as a leaf, where gradients stop and accumulate in float32."""
    result = value.detach().requires_grad_()
    result.grad_dtype = torch.float32
    return result


def compute_values(layers: Sequence[FastLinear | GpuLinear], dtype: torch.dtype) -> list[Values]:
    """Return each layer's values as functions of its parameters, in this dtype.

    On a GPU, layers with the same number of inputs are normalized together, in one launch.
    """
    found: list[Values] = [{} for _ in layers]
    groups = defaultdict(list)
    for layer, values in zip(layers, found, strict=True):
        if isinstance(layer, FastLinear):
            values["weight"] = normalized_weight(layer, dtype, layer.multiple)
        else:
            groups[layer.get_parameter(V).shape[1]].append((layer, values))
    for group in groups.values():
        v, g = (stacked([layer.get_parameter(name) for layer, _ in group]) for name in (V, G))
        assign_rows(torch._weight_norm(v, g, 0).to(dtype), "weight", group)
    on_gpu = [pair for group in groups.values() for pair in group]
    if on_gpu:
        assign_rows(stacked([layer.bias for layer, _ in on_gpu]).to(dtype), "bias", on_gpu)
    return found


def stacked(parts: Sequence[Tensor]) -> Tensor:
    """Return the rows of all parts; a single part is not copied."""
    return parts[0] if len(parts) == 1 else torch.cat(list(parts))


def assign_rows(rows: Tensor, name: str, layers: Sequence[tuple[GpuLinear, Values]]) -> None:
    """Give each layer its part of the rows."""
    parts = rows.split([layer.out_features for layer, _ in layers])
    for (_, values), part in zip(layers, parts, strict=True):
        values[name] = part
