"""Copies between host and device: the host does not wait for those to a GPU, and once for several from it."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


def copy_to_device(values: Tensor | NDArray[Any], device: torch.device) -> Tensor:
    """Return values on a device; a GPU copies them from pinned memory, for which the host need not wait."""
    tensor = torch.from_numpy(values) if isinstance(values, np.ndarray) else values
    if device.type == "cuda":
        return tensor.pin_memory().to(device, non_blocking=True)
    return tensor.to(device)


def copy_to_host(values: Sequence[Tensor | NDArray[Any] | None], device: torch.device) -> list[Any]:
    """Return tensors of a device as arrays, all else as it is; the host waits once, for all of them."""
    is_gpu = device.type == "cuda"
    copies = [
        value.to("cpu", non_blocking=is_gpu) if isinstance(value, Tensor) else value for value in values
    ]
    if is_gpu:
        torch.cuda.current_stream(device).synchronize()
    return [copy.numpy() if isinstance(copy, Tensor) else copy for copy in copies]
