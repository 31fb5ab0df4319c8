"""The weights of an update: norm, scale and cast once, however many parts its batch has (§4.2).

Between the parts of a batch no weight changes. So each weight-normalized map computes its weight before the
first part, and passes the gradient on to v and g after the last one. In between, gradients of several parts
are added up in float32.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from convs2s.train.fast.gpu_layers import GpuLinear
from convs2s.train.fast.linear import FastLinear, G, V, normalized_weight

Prepared = tuple[FastLinear | GpuLinear, str, Tensor]
"""A layer, `weight` or `bias`, and its value."""


@contextmanager
def weights_of_update(model: nn.Module, dtype: torch.dtype, parts: int) -> Iterator[None]:
    """Prepare the weights of all fast layers; at the end, pass their gradients on to the parameters.

    Args:
        dtype: of products.
        parts: passes whose gradients are added up.
    """
    values = prepared(model, dtype)
    leaves = [leaf(value, parts) for _, _, value in values]
    for (layer, name, _), one in zip(values, leaves, strict=True):
        layer.prepared[name] = one
    try:
        yield
    finally:
        for layer, _, _ in values:
            layer.prepared.clear()
    used = [
        (value, one.grad) for (_, _, value), one in zip(values, leaves, strict=True) if one.grad is not None
    ]
    if used:
        torch.autograd.backward(
            [value for value, _ in used], [gradient.to(value.dtype) for value, gradient in used]
        )


def prepared(model: nn.Module, dtype: torch.dtype) -> list[Prepared]:
    """Return what the layers' forward passes read, as functions of the parameters."""
    on_cpu = [layer for layer in model.modules() if isinstance(layer, FastLinear)]
    on_gpu = [layer for layer in model.modules() if isinstance(layer, GpuLinear)]
    alone = [(layer, "weight", normalized_weight(layer, dtype, layer.multiple)) for layer in on_cpu]
    return [*alone, *stacked(on_gpu, dtype)]


def leaf(value: Tensor, parts: int) -> Tensor:
    """Return the same memory as a leaf, where gradients stop."""
    result = value.detach().requires_grad_()
    if parts > 1:
        result.grad_dtype = torch.float32
    return result


def stacked(layers: Sequence[GpuLinear], dtype: torch.dtype) -> Iterator[Prepared]:
    """Yield weight and bias of each layer in this dtype.

    Layers with as many inputs are normalized together, since a GPU takes as long to start on one as on all.
    """
    if not layers:
        return
    groups = defaultdict(list)
    for layer in layers:
        groups[layer.get_parameter(V).shape[1]].append(layer)
    for group in groups.values():
        rows = [layer.out_features for layer in group]
        v, g = (torch.cat([layer.get_parameter(name) for layer in group]) for name in (V, G))
        weights = torch._weight_norm(v, g, 0).to(dtype)
        yield from (
            (layer, "weight", weight) for layer, weight in zip(group, weights.split(rows), strict=True)
        )
    biases = torch.cat([layer.bias for layer in layers]).to(dtype)
    rows = [layer.out_features for layer in layers]
    yield from ((layer, "bias", bias) for layer, bias in zip(layers, biases.split(rows), strict=True))
