"""Nesterov's accelerated gradient with renormalized gradients (§4.2)."""

from collections.abc import Iterable

import torch
from torch import Tensor, nn
from torch.optim.sgd import sgd


class Nesterov:
    """Nesterov's accelerated gradient; PyTorch's form is algebraically equal to the authors' (T12).

    Uses the fused version of SGD, which scales gradients and updates weights and momentum in one pass. The
    class `torch.optim.SGD` offers it too, but loads PyTorch's compiler: a second or two per process.

    Args:
        parameters: to optimize.
        momentum: fraction of the momentum kept by each update; between 0 and 1.

    Attributes:
        momenta: of the parameters that have had a gradient.
    """

    def __init__(self, parameters: Iterable[nn.Parameter], momentum: float) -> None:
        self.parameters = list(parameters)
        self.momentum = momentum
        self.momenta: dict[nn.Parameter, Tensor] = {}

    @torch.no_grad()
    def update(self, learning_rate: Tensor | float, clip_norm: float) -> Tensor:
        """Renormalize the gradients to `clip_norm` if their norm exceeds it, make one update, clear them.

        If the norm is NaN or infinite, no weight is changed. The host does not wait for the device.

        Returns:
            The norm before clipping.
        """
        gradients = {p: p.grad for p in self.parameters if p.grad is not None}
        for parameter in gradients:
            if parameter not in self.momenta:
                self.momenta[parameter] = torch.zeros_like(parameter)
        norm: Tensor = nn.utils.get_total_norm(gradients.values(), foreach=True)
        sgd(
            list(gradients),
            list(gradients.values()),
            [self.momenta[parameter] for parameter in gradients],
            fused=True,
            # Gradients are divided by grad_scale; nothing is updated if found_inf is not 0.
            grad_scale=(norm.double() / clip_norm).clamp(min=1.0).float(),
            found_inf=1.0 - norm.isfinite().float(),
            lr=learning_rate,  # type: ignore[arg-type]  # a tensor will do
            momentum=self.momentum,
            nesterov=True,
            weight_decay=0.0,
            dampening=0.0,
            maximize=False,
        )
        self.clear_gradients()
        return norm

    def clear_gradients(self) -> None:
        """Forget the gradients."""
        for parameter in self.parameters:
            parameter.grad = None
