"""Nesterov's accelerated gradient with renormalized gradients (§4.2), and Adam."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.adam import adam
from torch.optim.sgd import sgd

BETAS, EPSILON = (0.9, 0.98), 1e-9


class Optimizer(ABC):
    """Updates parameters by gradients whose norm is limited.

    Uses PyTorch's fused functions, which scale gradients and update weights and buffers in one pass. The
    classes of `torch.optim` offer them too, but load PyTorch's compiler: a second or two per process.

    Attributes:
        buffers: what is remembered of past gradients, by name and parameter.
    """

    names: tuple[str, ...]

    def __init__(self, parameters: Iterable[nn.Parameter]) -> None:
        self.parameters = list(parameters)
        self.buffers = {name: {p: torch.zeros_like(p) for p in self.parameters} for name in self.names}

    @torch.no_grad()
    def update(self, learning_rate: Tensor | float, clip_norm: float, updates: Tensor | int) -> Tensor:
        """Renormalize the gradients to `clip_norm` if their norm exceeds it, make one update, clear them.

        If the norm is NaN or infinite, no weight is changed. The host does not wait for the device.

        Args:
            learning_rate: on the parameters' device, as is `updates`, if it is a tensor.
            updates: made before this one.

        Returns:
            The norm before clipping.
        """
        parameters = [p for p in self.parameters if p.grad is not None]
        gradients = [p.grad for p in parameters if p.grad is not None]
        norm: Tensor = nn.utils.get_total_norm(gradients, foreach=True)
        self._update(
            updates,
            parameters,
            gradients,
            *([buffer[p] for p in parameters] for buffer in self.buffers.values()),
            lr=learning_rate,
            maximize=False,
            weight_decay=0.0,
            fused=True,
            # Gradients are divided by grad_scale; nothing is updated if found_inf is not 0.
            grad_scale=(norm.double() / clip_norm).clamp(min=1.0).float(),
            found_inf=1.0 - norm.isfinite().float(),
        )
        self.clear_gradients()
        return norm

    @abstractmethod
    def _update(self, updates: Tensor | int, *tensors: Any, **settings: Any) -> None:
        """Update parameters by their gradients and buffers, three lists or more of equal length."""

    def clear_gradients(self) -> None:
        """Forget the gradients."""
        for parameter in self.parameters:
            parameter.grad = None


class Nesterov(Optimizer):
    """Nesterov's accelerated gradient; PyTorch's form is algebraically equal to the authors' (T12).

    Args:
        momentum: fraction of the momentum kept by each update; between 0 and 1.
    """

    names = ("momentum",)

    def __init__(self, parameters: Iterable[nn.Parameter], momentum: float) -> None:
        super().__init__(parameters)
        self.momentum = momentum

    def _update(self, updates: Tensor | int, *tensors: Any, **settings: Any) -> None:
        sgd(*tensors, momentum=self.momentum, dampening=0.0, nesterov=True, **settings)


class Adam(Optimizer):
    """Adam (Kingma & Ba, 2015), with the constants that Vaswani et al. (2017) use for translation."""

    names = ("momentum", "variance")

    def _update(self, updates: Tensor | int, *tensors: Any, **settings: Any) -> None:
        gradients = tensors[1]
        made = torch.zeros(len(gradients), device=gradients[0].device).add_(updates)
        lists = *tensors, [], list(made.unbind())
        adam(*lists, beta1=BETAS[0], beta2=BETAS[1], eps=EPSILON, amsgrad=False, **settings)
