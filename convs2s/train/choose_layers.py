"""The layers and the loss of a training: others than the plain ones, where they compute the same.

On a CPU these are the engine's. On a GPU, once its memory has run out, the loss is computed in parts.

Before, the loss and the gradients of a few sentence pairs of the training are computed both ways, with the
same dropout masks. What changes them by more than rounding is left out. The pairs have very
different lengths, as an edit may act only from a position on, only at padding, or only at an end.
"""

import warnings
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from convs2s.base.messages import is_out_of_memory
from convs2s.engine.agreement import (
    describe_difference,
    is_engine_wanted,
    relative_difference,
    warn_of_difference,
)
from convs2s.engine.train.layers import (
    FastDropout,
    FastGluConvolution,
    FastMultistepAttention,
    dropout,
    fast_softmax_loss,
)
from convs2s.ids.batching import Indices
from convs2s.model.glu_block import GluConvolution
from convs2s.model.multistep_attention import MultistepAttention
from convs2s.train.loss import softmax_loss
from convs2s.train.loss_in_parts import MOST_PARTS, LossInParts
from convs2s.train.training import Training

PAIRS = 8
MOST_TOKENS = 64
"""Tokens of the longest side of a pair; longer pairs are compared only if there are no others."""
SMALL_GRADIENT = 0.1
"""Differences are relative to a weight's largest gradient, but at least to this share of the largest of all.

Where terms cancel, as for a bias before a batch norm, gradients are only rounding: up to 6e-6 of the largest.
"""


@dataclass(frozen=True)
class FastLayer:
    """A layer, or a way to compute the loss, that replaces a plain one.

    Attributes:
        plain: the file of the layer that it replaces.
        use: makes a training use it, or the plain one.
    """

    name: str
    plain: str
    use: Callable[[Training, bool], None]


def replace_modules(model: nn.Module, before: type[nn.Module], after: type[nn.Module]) -> None:
    """Make all modules of one class those of another, with the same weights under the same names."""
    for module in model.modules():
        if type(module) is before:
            module.__class__ = after


def use_modules(plain: type[nn.Module], fast: type[nn.Module]) -> Callable[[Training, bool], None]:
    """Return what makes a training use modules of the second class, or else of the first."""

    def use_either(training: Training, is_fast: bool) -> None:
        replace_modules(training.model, *((plain, fast) if is_fast else (fast, plain)))

    return use_either


def use_softmax(training: Training, is_fast: bool) -> None:
    """Use the fast loss of the softmax layer, or the plain one."""
    training.softmax = fast_softmax_loss if is_fast else softmax_loss


def use_small_parts(training: Training, is_in_parts: bool) -> None:
    """Compute the loss of however few tokens in parts, or else at once."""
    training.softmax = LossInParts(part_bytes=1) if is_in_parts else softmax_loss


FILE = "convs2s/engine/train/layers.py"
FAST_LAYERS = (
    FastLayer(
        "The CPU's fast convolution",
        "convs2s/model/glu_block.py",
        use_modules(GluConvolution, FastGluConvolution),
    ),
    FastLayer(
        "The CPU's fast gradient of attention",
        "convs2s/model/multistep_attention.py",
        use_modules(MultistepAttention, FastMultistepAttention),
    ),
    FastLayer("The CPU's fast dropout", "torch.nn.Dropout", use_modules(nn.Dropout, FastDropout)),
    FastLayer("The CPU's fast loss", "convs2s/train/loss.py", use_softmax),
)
"""Of a CPU."""
IN_PARTS = FastLayer("The loss in parts", "convs2s/train/loss.py", use_small_parts)
"""Of a GPU, as it is compared."""


class LossAndGradients(NamedTuple):
    """What a few pairs give: their summed loss, and the gradients of the trained weights, in order."""

    loss: Tensor
    gradients: tuple[Tensor, ...]


def choose_layers(training: Training) -> None:
    """Use those layers of the device, and that loss, that compute what the plain ones do.

    A training that torch.compile compiles has the plain ones, as it cannot read the others.
    """
    device = training.workers.device.type
    if training.params.compile or not is_engine_wanted():
        return
    if device == "cpu":
        choose_fast_layers(training)
    elif device == "cuda":
        training.softmax = LossInParts(is_used=False)


def is_same_with(training: Training, threads: int) -> bool:
    """Return whether a batch has the same loss and gradients with so many threads, to the last bit.

    No, if they cannot be computed for lack of memory, or because an edit of the model fails with this batch.
    """
    now = torch.get_num_threads()
    half = training.state.precision == "bfloat16"
    params = training.params
    most = params.batch_sentences if params.batch_by == "sentences" else None
    pairs = choose_alike(longer_sides(training), params.max_tokens)[:most]
    try:
        with torch.autocast("cpu", torch.bfloat16, enabled=half):
            expected = loss_and_gradients(training, {}, pairs)
            torch.set_num_threads(threads)
            found = loss_and_gradients(training, {}, pairs)
    except Exception:  # an update that has the same fault says so
        return False
    finally:
        torch.set_num_threads(now)
    results = zip((expected.loss, *expected.gradients), (found.loss, *found.gradients), strict=True)
    return all(torch.equal(*result) for result in results)


def choose_fast_layers(training: Training) -> None:
    """Use those of the engine's layers that compute what the plain ones do."""
    layers = FAST_LAYERS
    chosen = dict.fromkeys(layers, True)
    expected = loss_and_gradients(training, dict.fromkeys(layers, False))
    if find_fault(training, chosen, expected) is not None:
        for layer in layers:
            fault = find_fault(training, {other: other is layer for other in layers}, expected)
            chosen[layer] = fault is None
            if fault is not None:
                warn_of_difference(layer.name, FILE, layer.plain, fault)
    use(training, chosen)


def use_parts(training: Training, softmax: LossInParts) -> None:
    """Compute a training's loss in parts from now on, if it is a sum over tokens, as parts take it to be.

    Otherwise its `softmax` becomes the plain loss.
    """
    expected = loss_and_gradients(training, {IN_PARTS: False})
    fault = find_fault(training, {IN_PARTS: True}, expected)
    softmax.is_used = fault is None
    training.softmax = softmax if softmax.is_used else softmax_loss
    lack = f"The memory of {training.workers.device} does not hold all scores of an update at once. "
    if fault is None:
        warnings.warn(
            f"{lack}From now on, the loss of large updates is computed in up to {MOST_PARTS} parts: the "
            "training is the same but for rounding, and no GPU has measured how much longer it takes. Lower "
            "train.max_tokens to do without.",
            stacklevel=2,
        )
    else:
        warnings.warn(
            f"{lack}In parts, the loss ({IN_PARTS.plain}) would be another: {fault}. Expected it to be a sum "
            "over tokens.",
            stacklevel=2,
        )


def use(training: Training, chosen: Mapping[FastLayer, bool]) -> None:
    """Use fast layers where chosen, and the plain ones for the others."""
    for layer, is_fast in chosen.items():
        layer.use(training, is_fast)


def find_fault(
    training: Training, chosen: Mapping[FastLayer, bool], expected: LossAndGradients
) -> str | None:
    """Return how the chosen fast layers change loss or gradients; None if only by rounding."""
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


def loss_and_gradients(
    training: Training, chosen: Mapping[FastLayer, bool], pairs: Indices | None = None
) -> LossAndGradients:
    """Return the summed loss with the chosen layers, and the gradients of trained weights.

    Args:
        pairs: the numbers of those to compute it of; None: a few of all lengths.
    """
    use(training, chosen)
    if pairs is None:
        pairs = choose_pairs(longer_sides(training))
    inputs = training.inputs(training.train, pairs)
    parameters = [weight for weight in training.model.parameters() if weight.requires_grad]
    device = training.workers.device
    is_gpu = device.type == "cuda"
    masks = nullcontext() if is_gpu else EngineMasks()
    buffers = {buffer: buffer.clone() for buffer in training.model.buffers()}
    try:
        with torch.random.fork_rng(devices=[device] if is_gpu else []), masks:
            torch.manual_seed(training.seed)
            loss, _ = training.losses(training.params.label_smoothing).train()(*inputs, None)
            gradients = torch.autograd.grad(loss, parameters, allow_unused=True, materialize_grads=True)
    finally:
        for buffer, before in buffers.items():
            buffer.copy_(before)  # such as the running means of a batch norm
    return LossAndGradients(loss.detach(), gradients)


def longer_sides(training: Training) -> NDArray[Any]:
    """Return the length of the longer side of each pair."""
    return np.maximum(training.train.source.lengths, training.train.target.lengths)


def choose_alike(lengths: NDArray[Any], max_tokens: int) -> Indices:
    """Return the numbers of pairs of about the same length, longer than most, that fill a batch.

    They have at most `max_tokens`, padding included, but for a pair that has more.
    """
    order = lengths.argsort(kind="stable")
    upper = order[3 * len(order) // 4 :]
    padded = lengths[upper] * np.arange(1, len(upper) + 1)
    return upper[: max(1, int((padded <= max_tokens).sum()))]


def choose_pairs(lengths: NDArray[Any]) -> Indices:
    """Return the numbers of pairs, from the shortest to the longest, by the length of the longer side."""
    order = lengths.argsort(kind="stable")
    fitting = order[: max(PAIRS, int((lengths <= MOST_TOKENS).sum()))]
    ranks = np.linspace(0, len(fitting) - 1, min(PAIRS, len(fitting))).astype(np.int64)
    return fitting[ranks]


class EngineMasks(TorchFunctionMode):
    """Makes PyTorch's dropout draw the masks that the CPU's fast layers draw."""

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if function is F.dropout:
            function = dropout
        return function(*args, **(kwargs or {}))
