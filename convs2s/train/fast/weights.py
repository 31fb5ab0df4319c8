"""The weights of an update: norm, scale and cast once, however many parts its batch has (§4.2).

Between the parts of a batch no weight changes. So each weight-normalized map has its weight computed when the
first part needs it. With one part, its gradient flows on to v and g as soon as it is known: workers exchange
it while backward goes on in the layers below. With several, gradients are added up in float32 and passed on
after the last one.
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
    """Have the fast layers share weights; at the end, all gradients have reached the parameters.

    Args:
        dtype: of products.
        parts: passes whose gradients are added up.
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
    """Return the layers whose weights are computed together.

    On a CPU each alone. On a GPU those of the encoder, of the decoder, and the output layer, since gradients
    reach one of these after another.
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

    Not before: backward computes gradients in the reverse order of what forward did.
    """

    def __init__(self, layers: Sequence[FastLinear | GpuLinear], dtype: torch.dtype, parts: int) -> None:
        self.layers, self.dtype, self.parts = layers, dtype, parts
        self.values: list[Values] = []
        self.leaves: list[Values] = []

    def of(self, number: int) -> Values:
        """Return what the forward pass of a layer reads, given its number."""
        if not self.values:
            self.values = computed(self.layers, self.dtype)
            self.leaves = self.values
            if self.parts > 1:
                self.leaves = [{name: leaf(one) for name, one in found.items()} for found in self.values]
        return self.leaves[number]

    def gradients(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield values whose gradients have not yet reached the parameters, with these."""
        if self.parts == 1:
            return
        for values, leaves in zip(self.values, self.leaves, strict=True):
            for name, value in values.items():
                gradient = leaves[name].grad
                if gradient is not None:
                    yield value, gradient.to(value.dtype)


def leaf(value: Tensor) -> Tensor:
    """Return the same memory as a leaf, where gradients stop and are added up in float32."""
    result = value.detach().requires_grad_()
    result.grad_dtype = torch.float32
    return result


def computed(layers: Sequence[FastLinear | GpuLinear], dtype: torch.dtype) -> list[Values]:
    """Return each layer's values as functions of its parameters, in this dtype.

    On a GPU, layers with as many inputs are normalized together: it takes as long to start on one as on all.
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
        share_out(torch._weight_norm(v, g, 0).to(dtype), "weight", group)
    on_gpu = [pair for group in groups.values() for pair in group]
    if on_gpu:
        share_out(stacked([layer.bias for layer, _ in on_gpu]).to(dtype), "bias", on_gpu)
    return found


def stacked(parts: Sequence[Tensor]) -> Tensor:
    """Return the rows of all parts; of a single part without a copy."""
    return parts[0] if len(parts) == 1 else torch.cat(list(parts))


def share_out(rows: Tensor, name: str, layers: Sequence[tuple[GpuLinear, Values]]) -> None:
    """Give each layer its rows, which lie one after the other."""
    parts = rows.split([layer.out_features for layer, _ in layers])
    for (_, values), part in zip(layers, parts, strict=True):
        values[name] = part
