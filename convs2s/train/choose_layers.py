"""The layers and the loss of a training: on a CPU the engine's, where they compute what the plain ones do.

When a training is built, the loss and the gradients of a few of its sentence pairs are computed both ways,
with the same dropout masks. A fast layer that changes them by more than rounding is left out.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from convs2s.base.messages import is_out_of_memory
from convs2s.engine.agreement import (
    describe_difference,
    is_engine_wanted,
    relative_difference,
    warn_of_difference,
)
from convs2s.engine.train.layers import FastDropout, FastGluConvolution, dropout, fast_softmax_loss
from convs2s.model.glu_block import GluConvolution
from convs2s.train.loss import softmax_loss
from convs2s.train.training import Training

PAIRS = 8
SMALL_GRADIENT = 0.03
"""Differences are relative to a weight's largest gradient, but at least to this share of the largest of all.

Where terms cancel, as for a bias before a batch norm, gradients are only rounding: up to 1e-6 of the largest.
"""


@dataclass(frozen=True)
class FastLayer:
    """A layer of the engine, and the file of the plain one that it replaces."""

    name: str
    file: str
    use: Callable[[Training, bool], None]


def replace_modules(model: nn.Module, before: type[nn.Module], after: type[nn.Module]) -> None:
    """Make all modules of one class those of another, with the same weights under the same names."""
    for module in model.modules():
        if type(module) is before:
            module.__class__ = after


def use_convolution(training: Training, is_fast: bool) -> None:
    """Use the fast convolution, or the plain one."""
    kinds = (GluConvolution, FastGluConvolution) if is_fast else (FastGluConvolution, GluConvolution)
    replace_modules(training.model, *kinds)


def use_dropout(training: Training, is_fast: bool) -> None:
    """Use the fast dropout, or the plain one."""
    kinds = (nn.Dropout, FastDropout) if is_fast else (FastDropout, nn.Dropout)
    replace_modules(training.model, *kinds)


def use_softmax(training: Training, is_fast: bool) -> None:
    """Use the fast loss of the softmax layer, or the plain one."""
    training.softmax = fast_softmax_loss if is_fast else softmax_loss


FAST_LAYERS = (
    FastLayer("The CPU's fast convolution", "convs2s/model/glu_block.py", use_convolution),
    FastLayer("The CPU's fast dropout", "torch.nn.Dropout", use_dropout),
    FastLayer("The CPU's fast loss", "convs2s/train/loss.py", use_softmax),
)


class Result(NamedTuple):
    """What a few pairs give: their summed loss, and the gradients of the trained weights, in order."""

    loss: Tensor
    gradients: tuple[Tensor, ...]


def choose_layers(training: Training) -> None:
    """For a training on a CPU, use those of the engine's layers that compute what the plain ones do.

    torch.compile cannot read them, so a training that it compiles has none.
    """
    if training.workers.device.type != "cpu" or training.params.compile or not is_engine_wanted():
        return
    buffers = {buffer: buffer.clone() for buffer in training.model.buffers()}
    expected = loss_and_gradients(training, ())
    if find_fault(training, FAST_LAYERS, expected) is None:
        chosen: Collection[FastLayer] = FAST_LAYERS
    else:
        faults = {layer.name: find_fault(training, [layer], expected) for layer in FAST_LAYERS}
        chosen = [layer for layer in FAST_LAYERS if faults[layer.name] is None]
        for layer in FAST_LAYERS:
            fault = faults[layer.name]
            if fault is not None:
                warn_of_difference(layer.name, "convs2s/engine/train/layers.py", layer.file, fault)
    use(training, chosen)
    for buffer, before in buffers.items():
        buffer.copy_(before)  # such as the running means of a batch norm


def use(training: Training, chosen: Collection[FastLayer]) -> None:
    """Use these fast layers, and the plain ones for the others."""
    for layer in FAST_LAYERS:
        layer.use(training, layer in chosen)


def find_fault(training: Training, chosen: Collection[FastLayer], expected: Result) -> str | None:
    """Return how these fast layers change loss or gradients; None if only by rounding."""
    try:
        result = loss_and_gradients(training, chosen)
    except Exception as error:  # whatever an edit has led to
        if is_out_of_memory(error):
            raise
        return f"it ends in {type(error).__name__}: {error}"
    fault = describe_difference("losses", relative_difference(expected.loss, result.loss))
    if fault is not None:
        return fault
    least = SMALL_GRADIENT * max(float(gradient.abs().max()) for gradient in expected.gradients)
    pairs = zip(expected.gradients, result.gradients, strict=True)
    return describe_difference("gradients", max(relative_difference(*pair, least) for pair in pairs))


def loss_and_gradients(training: Training, chosen: Collection[FastLayer]) -> Result:
    """Return the summed loss of a few pairs with these fast layers, and the gradients of trained weights."""
    use(training, chosen)
    inputs = training.inputs(training.train, range(min(PAIRS, len(training.train.source))))
    parameters = [weight for weight in training.model.parameters() if weight.requires_grad]
    with torch.random.fork_rng(devices=[]), EngineMasks():
        torch.manual_seed(training.seed)
        loss, _ = training.losses(training.params.label_smoothing).train()(*inputs, None)
        gradients = torch.autograd.grad(loss, parameters, allow_unused=True, materialize_grads=True)
    return Result(loss.detach(), gradients)


class EngineMasks(TorchFunctionMode):
    """Makes PyTorch's dropout draw the masks that the engine's layers draw."""

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if function is F.dropout:
            function = dropout
        return function(*args, **(kwargs or {}))
