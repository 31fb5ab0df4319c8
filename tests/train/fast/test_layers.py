"""The fast layers compute the same as the plain ones, including gradients."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from convs2s.model.glu_block import GluConvolution
from convs2s.model.initialization import linear
from convs2s.train.fast.dropout import FastDropout, draw_key, drop
from convs2s.train.fast.glu_block import FastGluConvolution
from convs2s.train.fast.gpu_layers import GpuGluConvolution, GpuLinear
from convs2s.train.fast.linear import ROWS, FastLinear, G, round_rows
from convs2s.train.fast.switch import become
from convs2s.train.fast.weights import weights_of_update


def fast_linear(inputs: int, outputs: int) -> nn.Module:
    layer = linear(inputs, outputs)
    become(layer, FastLinear, multiple=1)
    return layer


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


@pytest.mark.parametrize("rows", [1, 5, ROWS])
def test_linear_equals_the_plain_one(rows: int) -> None:
    """This covers weight norm, product and bias; rows are rounded up internally."""
    layer = fast_linear(6, 9)
    layer.get_parameter(G).data.mul_(1.7)
    layer.bias.data.uniform_(-1, 1)  # type: ignore[operator]
    x = torch.randn(1, rows, 6)
    found = outcome(layer, layer, x)
    wanted = outcome(layer, lambda x: nn.functional.linear(x, layer.weight, layer.bias), x)  # type: ignore[arg-type]
    for one, other in zip(found, wanted, strict=True):
        assert_close(one, other, atol=2e-5, rtol=1e-4)


@pytest.mark.parametrize(("width", "left"), [(1, 0), (3, 1), (3, 2), (5, 4)])
@pytest.mark.parametrize("dropout", [0.0, 0.3])
@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16])
def test_glu_convolution_equals_the_plain_one(
    width: int, left: int, dropout: float, precision: torch.dtype
) -> None:
    """This covers windows, product and gated linear unit, after dropout on the input."""
    fast, plain = FastGluConvolution(7, 5, width, dropout), GluConvolution(7, 5, width, 0.0)
    plain.load_state_dict(fast.state_dict())
    become(fast, FastLinear, multiple=1)
    for layer in (fast, plain):
        layer.window_map.bias.data.copy_(torch.arange(10) / 10)
    x = torch.randn(4, 6, 7)
    right = width - 1 - left
    with torch.autocast("cpu", torch.bfloat16, enabled=precision == torch.bfloat16):
        torch.manual_seed(3)
        key = draw_key(dropout)
        torch.manual_seed(3)
        found = outcome(fast, lambda x: fast(x, left, right), x)
        wanted = outcome(plain, lambda x: plain(x * drop(torch.ones_like(x), key), left, right), x)
    tolerance = 2e-5 if precision == torch.float32 else 0.03
    for one, other in zip(found, wanted, strict=True):
        assert_close(one, other, atol=tolerance * float(other.abs().max()), rtol=tolerance)


def test_a_convolution_for_gpus_has_dropout() -> None:
    """Two passes differ, and the seed repeats them."""
    layer = GpuGluConvolution(7, 5, 3, 0.5)
    become(layer, GpuLinear)
    results = []
    for seed in (1, 2, 1):
        torch.manual_seed(seed)
        with weights_of_update(layer, torch.float32, 1):
            results.append(layer(torch.ones(2, 6, 7), 1, 1))
    assert torch.equal(results[0], results[2])
    assert not torch.equal(results[0], results[1])


def test_layers_that_do_not_train_are_the_plain_ones() -> None:
    """Validation has no dropout and computes like translation."""
    layer = FastGluConvolution(7, 5, 3, 0.5).eval()
    plain = GluConvolution(7, 5, 3, 0.5).eval()
    plain.load_state_dict(layer.state_dict())
    x = torch.randn(2, 6, 7)
    assert torch.equal(layer(x, 1, 1), plain(x, 1, 1))
    assert FastDropout(0.5).eval()(x) is x
    linear_layer = fast_linear(6, 9).eval()
    wanted = nn.functional.linear(x[:, :, :6], linear_layer.weight, linear_layer.bias)  # type: ignore[arg-type]
    assert torch.equal(linear_layer(x[:, :, :6]), wanted)


def test_rows_added_are_zeros_and_a_full_matrix_is_not_copied() -> None:
    """The matrix library sees few different shapes."""
    rows = round_rows(torch.ones(2, 3, 4))
    assert rows.shape == (ROWS, 4)
    assert rows.sum() == 24
    full = torch.ones(2, ROWS, 4)
    assert round_rows(full).data_ptr() == full.data_ptr()


def test_dropout_has_its_rate_and_keeps_the_mean() -> None:
    """For half a million elements, the share is within five standard deviations of the paper's 0.1."""
    count = 1 << 19
    x = torch.ones(count // 64, 64)
    dropped = FastDropout(0.1)(x)
    share = float((dropped == 0).float().mean())
    assert abs(share - 0.1) < 5 * math.sqrt(0.1 * 0.9 / count)
    assert_close(dropped[dropped != 0].unique(), torch.tensor([1 / 0.9]))


def test_dropout_masks_differ_between_calls_and_come_back_with_the_seed() -> None:
    """Layers and updates draw independent masks; a resumed update draws the same ones."""
    torch.manual_seed(5)
    masks = [FastDropout(0.5)(torch.ones(64, 256)) > 0 for _ in range(4)]
    torch.manual_seed(5)
    assert torch.equal(FastDropout(0.5)(torch.ones(64, 256)) > 0, masks[0])
    for i in range(4):
        for j in range(i):
            assert abs(float((masks[i] == masks[j]).float().mean()) - 0.5) < 5 * 0.5 / 128


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_masks_do_not_depend_on_threads(threads: int) -> None:
    """Random bits belong to positions, whichever thread computes them."""
    x, key = torch.ones(1024, 256), draw_key(0.3)
    wanted = drop(x, key)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(threads)
        assert torch.equal(drop(x, key), wanted)
    finally:
        torch.set_num_threads(before)


def test_backward_of_dropout_drops_the_same_elements() -> None:
    """The gradient of a kept element is scaled like the element; that of a dropped one is zero."""
    x = torch.ones(8, 64, requires_grad=True)
    y = FastDropout(0.4)(x)
    y.sum().backward()
    assert x.grad is not None
    assert torch.equal(x.grad, y.detach())
