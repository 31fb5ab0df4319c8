"""Run compiled loops on CPU tensors, on as many threads as PyTorch uses."""

import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

WORTH_A_THREAD = 1 << 15  # elements; waking a thread takes as long as a loop over this many


def memory(tensor: Tensor) -> NDArray[Any]:
    """Return the memory of a contiguous tensor; bfloat16 as uint16."""
    tensor = tensor.detach() if tensor.requires_grad else tensor
    assert tensor.is_contiguous(), tensor.stride()
    return (tensor.view(torch.uint16) if tensor.dtype == torch.bfloat16 else tensor).numpy()


def share_out(loop: Callable[..., None], items: int, elements: int, *arguments: Any) -> None:
    """Call loop(*arguments, start, stop) for all items, split among threads.

    Args:
        elements: total number of elements that the loop passes over.
    """
    count = min(torch.get_num_threads(), items, max(1, elements // WORTH_A_THREAD))
    arrays = [memory(value) if isinstance(value, Tensor) else value for value in arguments]
    bounds = [items * i // count for i in range(count + 1)]
    others = [threads().submit(loop, *arrays, *bounds[i : i + 2]) for i in range(1, count)]
    loop(*arrays, 0, bounds[1])
    for other in others:
        other.result()


@functools.cache
def threads() -> ThreadPoolExecutor:
    """Return the helper threads, which sleep while there is nothing to do."""
    return ThreadPoolExecutor(thread_name_prefix="loops")
