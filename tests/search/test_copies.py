"""Copies to and from a GPU that this machine need not have."""

from unittest import mock

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from convs2s.search.copies import copy_to_device, copy_to_host

CPU, GPU = torch.device("cpu"), torch.device("cuda")


@pytest.mark.parametrize("values", [np.arange(3), torch.arange(3)])
def test_a_gpu_is_given_pinned_memory(
    values: NDArray[np.int64] | Tensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From any other, the host would have to wait for the end of the copy."""
    events: list[object] = []

    def pin_memory(tensor: Tensor) -> Tensor:
        events.append("pin")
        return tensor

    def to(tensor: Tensor, device: torch.device, non_blocking: bool = False) -> Tensor:
        events.append((device, non_blocking))
        return tensor

    monkeypatch.setattr(Tensor, "pin_memory", pin_memory)
    monkeypatch.setattr(Tensor, "to", to)
    assert copy_to_device(values, GPU).tolist() == [0, 1, 2]
    assert copy_to_device(values, CPU).tolist() == [0, 1, 2]
    assert events == ["pin", (GPU, True), (CPU, False)]


def test_the_host_waits_once_for_several_tensors() -> None:
    """A copy that is not waited for has numbers of before; each wait leaves the GPU without work."""
    events = list[str]()

    def copy(device: str, *, non_blocking: bool) -> Tensor:
        events.append(f"copy {non_blocking}")
        return torch.ones(2)

    tensors = [mock.Mock(spec=Tensor) for _ in range(3)]
    for tensor in tensors:
        tensor.to.side_effect = copy
    stream = mock.Mock()
    stream.synchronize.side_effect = lambda: events.append("wait")
    with mock.patch("torch.cuda.current_stream", return_value=stream) as current:
        *arrays, nothing = copy_to_host([*tensors, None], GPU)
    assert events == ["copy True"] * 3 + ["wait"]
    assert current.call_args == mock.call(GPU)  # of this GPU, not of the current one
    assert [array.tolist() for array in arrays] == [[1.0, 1.0]] * 3
    assert nothing is None
    assert copy_to_host([torch.arange(2)], CPU)[0].tolist() == [0, 1]
