import math

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from convs2s.train.optimizer import BETAS, EPSILON, Adam, Nesterov


def test_updates_follow_nesterov_s_formula() -> None:
    """Sutskever's form by the authors' code: x += mu^2 v - (1 + mu) lr g; v = mu v - lr g (T12), by hand."""
    mu, rate = 0.9, 0.1
    parameter = nn.Parameter(torch.tensor([1.0], dtype=torch.float64))
    optimizer = Nesterov([parameter], mu)
    x, v = 1.0, 0.0
    for gradient in (0.05, -0.02, 0.03):
        parameter.grad = torch.tensor([gradient], dtype=torch.float64)
        optimizer.update(rate, clip_norm=1.0, updates=0)
        x += mu**2 * v - (1 + mu) * rate * gradient
        v = mu * v - rate * gradient
        assert_close(parameter.detach(), torch.tensor([x], dtype=torch.float64))


def test_a_large_gradient_is_scaled_to_the_norm_and_a_small_one_kept() -> None:
    """Renormalized when the norm exceeds 0.1 (§4.2): (3, 4) has norm 5 and becomes (0.06, 0.08)."""
    for gradient, wanted in (([3.0, 4.0], [0.06, 0.08]), ([0.03, 0.04], [0.03, 0.04])):
        parameter = nn.Parameter(torch.zeros(2))
        optimizer = Nesterov([parameter], 1e-12)
        parameter.grad = torch.tensor(gradient)
        norm = float(optimizer.update(1.0, clip_norm=0.1, updates=0))
        assert norm == pytest.approx(math.hypot(*gradient))
        assert_close(parameter.detach(), -torch.tensor(wanted))
        assert parameter.grad is None


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_gradient_that_is_not_finite_changes_no_weight(bad: float) -> None:
    """One bad update would ruin all weights permanently."""
    parameter = nn.Parameter(torch.ones(2))
    optimizer = Nesterov([parameter], 0.5)
    parameter.grad = torch.tensor([0.1, bad])
    assert not optimizer.update(1.0, clip_norm=0.1, updates=0).isfinite()
    assert_close(parameter.detach(), torch.ones(2))
    parameter.grad = torch.tensor([0.1, 0.0])
    optimizer.update(1.0, clip_norm=1.0, updates=0)  # the bad gradient is not in the momentum
    assert_close(parameter.detach(), torch.tensor([0.85, 1.0]))


def test_adam_is_pytorch_s() -> None:
    """Updates are the same with clipping, and after a resumed training has loaded the buffers."""
    one, other = nn.Parameter(torch.ones(3)), nn.Parameter(torch.ones(3))
    ours, theirs = Adam([one]), torch.optim.Adam([other], lr=0.1, betas=BETAS, eps=EPSILON)
    for i, gradient in enumerate(torch.randn(6, 3)):
        if i == 3:
            resumed = Adam([one])
            resumed.buffers = ours.buffers
            ours = resumed
        one.grad, other.grad = gradient.clone(), gradient.clone()
        nn.utils.clip_grad_norm_([other], 0.5)
        ours.update(0.1, clip_norm=0.5, updates=i)
        theirs.step()
        assert_close(one.detach(), other.detach(), atol=1e-5, rtol=1e-5)
