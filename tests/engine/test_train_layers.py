"""The layers and the loss of a training on a CPU compute the same as the plain ones, gradients included."""

import ctypes
import itertools
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from convs2s.engine.train import loops as train_loops
from convs2s.engine.train.layers import (
    FastDropout,
    FastGluConvolution,
    FastMultistepAttention,
    SoftmaxForAnyThreads,
    draw_key,
    drop,
)
from convs2s.model.glu_block import GluConvolution
from convs2s.train.loop import train
from convs2s.train.training import Training
from tests.train.tiny import tiny_training, weights


def outcome(layer: nn.Module, forward: Callable[[Tensor], Tensor], x: Tensor) -> list[Tensor]:
    """Return the result and the gradients of input and parameters, given a gradient by formula."""
    layer.zero_grad()
    x = x.detach().requires_grad_()
    y = forward(x)
    y.backward(torch.cos(torch.arange(y.numel())).view(y.shape).to(y.dtype))
    assert x.grad is not None
    gradients = [p.grad for p in layer.parameters() if p.grad is not None]
    assert len(gradients) == 3  # bias, g and v
    return [y.detach().float(), x.grad.float(), *(gradient.clone() for gradient in gradients)]


@pytest.mark.parametrize(("width", "left"), [(1, 0), (3, 1), (3, 2), (5, 4)])
@pytest.mark.parametrize("dropout", [0.0, 0.3])
@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16])
def test_glu_convolution_equals_the_plain_one(
    width: int, left: int, dropout: float, precision: torch.dtype
) -> None:
    """This covers windows, product and gated linear unit, after dropout on the input."""
    fast, plain = FastGluConvolution(7, 5, width, dropout), GluConvolution(7, 5, width, 0.0)
    plain.load_state_dict(fast.state_dict())
    for layer in (fast, plain):
        layer.window_map.bias.data.copy_(torch.arange(10) / 10)
    x = torch.randn(4, 6, 7)
    right = width - 1 - left
    with torch.autocast("cpu", torch.bfloat16, enabled=precision == torch.bfloat16):
        torch.manual_seed(3)
        key = draw_key(dropout)
        torch.manual_seed(3)
        found = outcome(fast, lambda x: fast(x, left, right), x)
        expected = outcome(plain, lambda x: plain(x * drop(torch.ones_like(x), key), left, right), x)
    tolerance = 2e-5 if precision == torch.float32 else 0.03
    for one, other in zip(found, expected, strict=True):
        assert_close(one, other, atol=tolerance * float(other.abs().max()), rtol=tolerance)


def test_layers_that_do_not_train_are_the_plain_ones() -> None:
    """Validation has no dropout and computes like translation."""
    layer = FastGluConvolution(7, 5, 3, 0.5).eval()
    plain = GluConvolution(7, 5, 3, 0.5).eval()
    plain.load_state_dict(layer.state_dict())
    x = torch.randn(2, 6, 7)
    assert torch.equal(layer(x, 1, 1), plain(x, 1, 1))
    assert FastDropout(0.5).eval()(x) is x


def test_dropout_has_its_rate_and_keeps_the_mean() -> None:
    """For half a million elements, the share is within five standard deviations of the paper's 0.1."""
    count = 1 << 19
    x = torch.ones(count // 64, 64, requires_grad=True)
    dropped = FastDropout(0.1)(x)
    share = float((dropped == 0).float().mean())
    assert abs(share - 0.1) < 5 * math.sqrt(0.1 * 0.9 / count)
    assert_close(dropped[dropped != 0].unique(), torch.tensor([1 / 0.9]))
    dropped.sum().backward()
    assert x.grad is not None
    assert torch.equal(x.grad, dropped.detach())


def test_dropout_masks_differ_between_calls() -> None:
    """Layers and updates draw independent masks: two agree in half of their elements."""
    torch.manual_seed(5)
    masks = [FastDropout(0.5)(torch.ones(1024, 256)) > 0 for _ in range(4)]
    for one, other in itertools.combinations(masks, 2):
        assert abs(float((one == other).float().mean()) - 0.5) < 5 * 0.5 / 512


def test_dropout_masks_come_back_with_the_seed() -> None:
    """A resumed update draws the mask that it had, with any number of threads."""
    masks = []
    before = torch.get_num_threads()
    try:
        for threads in (before, 1, 2, 3):
            torch.set_num_threads(threads)
            torch.manual_seed(5)
            masks.append(FastDropout(0.5)(torch.ones(1024, 256)) > 0)
    finally:
        torch.set_num_threads(before)
    for mask in masks[1:]:
        assert torch.equal(mask, masks[0])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_gradient_of_attention_does_not_depend_on_threads(dtype: torch.dtype) -> None:
    """PyTorch's does, if a thread's rows are worth waking it. It is that of PyTorch but for rounding."""
    generator = torch.Generator().manual_seed(1)
    random = torch.randn(2, 60, 60, 18, generator=generator)
    scores = random[0].to(dtype)
    scores[:7, :, 3:] = -math.inf  # padding
    results: list[torch.Tensor] = []
    before = torch.get_num_threads()
    try:
        for threads in (1, 2, 5):
            torch.set_num_threads(threads)
            leaf = scores.clone().requires_grad_()
            with SoftmaxForAnyThreads():
                chances = torch.softmax(leaf, dim=-1, dtype=torch.float32)
            results += torch.autograd.grad(chances, leaf, random[1])
    finally:
        torch.set_num_threads(before)
    assert results[0].dtype == dtype
    assert all(torch.equal(result, results[0]) for result in results[1:])
    leaf = scores.double().requires_grad_()
    (exact,) = torch.autograd.grad(leaf.softmax(-1), leaf, random[1].double())
    assert_close(results[0].double(), exact, atol=1e-6, rtol=1e-2 if dtype == torch.bfloat16 else 1e-5)


def losses_and_gradients(run: Training, smoothing: float, entries: Tensor | None) -> list[Tensor]:
    """Return the losses of a batch and every parameter's gradient."""
    losses = run.losses(smoothing).train()
    with torch.autocast("cpu", torch.bfloat16, enabled=run.state.precision == "bfloat16"):
        total, likelihood = losses(*run.inputs(run.train, range(9)), entries)
    (total / 7).backward()
    gradients = [p.grad for p in losses.parameters()]
    return [total.detach(), likelihood, *(g.clone() for g in gradients if g is not None)]


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("selected", [False, True])
def test_losses_and_gradients_are_those_of_the_plain_model(
    tmp_path: Path, precision: str, smoothing: float, selected: bool
) -> None:
    """Padded sentences, all layers, with and without vocabulary selection (§5.4)."""
    selection = {"common": 2, "candidates": 3} if selected else None
    plain, fast = (
        tiny_training(tmp_path, dropout=0.0, selection=selection, precision=precision, compile=is_plain)
        for is_plain in (True, False)
    )
    entries = torch.arange(30) if selected else None
    expected, found = (losses_and_gradients(run, smoothing, entries) for run in (plain, fast))
    assert len(found) == len(expected) == 2 + sum(p.requires_grad for p in fast.model.parameters())
    tolerance = 0.05 if precision == "bfloat16" else 1e-4
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == torch.float32
        assert_close(one, other, atol=tolerance * float(other.abs().max()), rtol=tolerance)


def test_a_training_on_a_cpu_has_these_layers(tmp_path: Path) -> None:
    """They are chosen when the training is built; weights and their names are those of the plain model."""
    plain, fast = (tiny_training(tmp_path, compile=is_plain).model for is_plain in (True, False))
    kinds = [type(module) for module in fast.modules()]
    assert (kinds.count(FastGluConvolution), kinds.count(FastDropout)) == (4, 3)
    assert kinds.count(FastMultistepAttention) == 2
    assert not {GluConvolution, nn.Dropout} & set(kinds)
    assert not {FastGluConvolution, FastDropout} & {type(module) for module in plain.modules()}
    assert list(fast.state_dict()) == list(plain.state_dict())
    assert all(torch.equal(one, plain.state_dict()[name]) for name, one in fast.state_dict().items())


def test_a_nan_reaches_loss_and_weights(tmp_path: Path) -> None:
    """No loop may turn NaN into a number, or nobody would notice that the training has diverged.

    The training ends with an error, before the update changes a weight.
    """
    run = tiny_training(tmp_path, dropout=0.1, precision="bfloat16")
    run.model.decoder.output_map.bias.data[0] = torch.nan
    found = losses_and_gradients(run, 0.0, None)
    assert found[0].isnan()
    assert any(gradient.isnan().any() for gradient in found[2:])
    before = weights(run)
    with pytest.raises(
        FloatingPointError, match=r"update 1 \(epoch 1, learning rate 0.25\).*nan.*Lower train.learning_rate"
    ):
        list(train(run))
    assert torch.equal(weights(run).nan_to_num(), before.nan_to_num())


@pytest.mark.parametrize("columns", [16, 20])
def test_the_loss_does_not_depend_on_addresses(columns: int) -> None:
    """The loop's own memory may lie right after the bias, which is tried for many sizes of that memory."""
    libc = ctypes.CDLL(None)
    libc.malloc.restype = ctypes.c_void_p
    libc.malloc.argtypes = [ctypes.c_size_t]
    libc.free.argtypes = [ctypes.c_void_p]
    random = np.random.default_rng(0)
    scores, values = (random.standard_normal(n).astype(np.float32) for n in ((2, 64), columns))
    results = set()
    loop = cast(Any, train_loops.softmax_loss)
    for size in range(4 * columns + 8, 4 * columns + 600, 16):
        chunks = sorted(libc.malloc(size) for _ in range(60))
        first, second = min(itertools.pairwise(chunks), key=lambda pair: pair[1] - pair[0])
        bias = np.ctypeslib.as_array((ctypes.c_float * columns).from_address(first + size - 4 * columns))
        bias[:] = values
        own = scores.copy()
        losses = np.zeros((2, 2), np.float32)
        sums = np.zeros((1, columns), np.float32)
        libc.free(second)  # who next needs this size gets it
        loop(own, bias, np.arange(2), 0.1, True, losses, sums, 0, 1)
        results.add(own.tobytes() + losses.tobytes() + sums.tobytes())
        for chunk in chunks:
            if chunk != second:
                libc.free(chunk)
    assert len(results) == 1
