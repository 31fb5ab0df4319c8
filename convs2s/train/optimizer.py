"""Nesterov's accelerated gradient with renormalized gradients (§4.2)."""

from collections.abc import Iterable

import torch
from torch import Tensor, nn


def nesterov(parameters: Iterable[nn.Parameter], learning_rate: float, momentum: float) -> torch.optim.SGD:
    """Make the optimizer; SGD's Nesterov form is algebraically equal to that of the authors' code (T12).

    It is the fused one, which passes over weights, momentum and gradients once, and scales these as it does.
    """
    return torch.optim.SGD(parameters, lr=learning_rate, momentum=momentum, nesterov=True, fused=True)


def update(optimizer: torch.optim.SGD, learning_rate: Tensor | float, clip_norm: float) -> Tensor:
    """Renormalize the gradients to `clip_norm` if their norm exceeds it, make one update, clear them.

    If the norm is NaN or infinite, no weight is changed. All this happens on the device, unseen.

    Returns:
        The norm before clipping.
    """
    parameters = [p for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
    norm: Tensor = nn.utils.get_total_norm([p.grad for p in parameters], foreach=True)
    # The fused optimizer divides gradients by the first number, and does nothing if the second is not 0.
    optimizer.grad_scale = (norm.double() / clip_norm).clamp(min=1.0).float()  # type: ignore[attr-defined]
    optimizer.found_inf = 1.0 - norm.isfinite().float()  # type: ignore[attr-defined]
    for group in optimizer.param_groups:
        group["lr"] = learning_rate
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return norm
