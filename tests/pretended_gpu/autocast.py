"""Autocast for pretended GPUs, whose tensors PyTorch's own takes for the CPU's and leaves as they are.

The lists are those of https://docs.pytorch.org/docs/stable/amp.html#cuda-op-specific-behavior, as far as a
model of sequences could use them.
"""

import functools
import warnings
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload

from tests.pretended_gpu.tensors import convert, list_tensors

LOWER = "addbmm addmm addmv baddbmm bmm conv1d conv2d conv_transpose1d linear matmul mm mv"
FLOAT32 = ("cumprod cumsum exp expm1 group_norm kl_div layer_norm linalg_vector_norm log log10 log1p log2 "
           "log_softmax mse_loss nll_loss norm pow prod reciprocal rsqrt softmax softplus sum")  # fmt: skip
WIDEST = "addcdiv addcmul cat dot index_put scatter_add stack tensordot"
LIBRARY = torch.library.Library("aten", "IMPL")
KEY = "AutocastCUDA"
CASTS: dict[int, tuple[Tensor, Tensor]] = {}
"""Weights and their casts, by the weight's id; PyTorch forgets them at the end of autocast."""


def pretend_autocast() -> None:
    """Replace PyTorch's own autocast for CUDA."""
    clear, has_kernel = torch.clear_autocast_cache, torch._C._dispatch_has_kernel_for_dispatch_key

    def clear_autocast_cache() -> None:
        CASTS.clear()
        clear()

    torch.clear_autocast_cache = clear_autocast_cache
    warnings.filterwarnings("ignore", "Warning only once for all operators")
    for names, choose_type in ((LOWER, lower), (FLOAT32, float32), (WIDEST, widest)):
        for name in names.split():
            packet = getattr(torch.ops.aten, name)
            for overload in [getattr(packet, overload) for overload in packet.overloads()]:
                if torch._C._dispatch_has_kernel(overload.name()) and has_kernel(overload.name(), KEY):
                    LIBRARY.impl(overload, functools.partial(autocast, overload, choose_type), KEY)


def lower(_: list[Tensor]) -> torch.dtype:
    """Return the type of fast products."""
    return torch.get_autocast_dtype("cuda")


def float32(_: list[Tensor]) -> torch.dtype:
    """Return the type of sums and functions that are sensitive to rounding."""
    return torch.float32


def widest(tensors: list[Tensor]) -> torch.dtype:
    """Return the type of operations that mix types."""
    return functools.reduce(torch.promote_types, [tensor.dtype for tensor in tensors])


def autocast(func: OpOverload, choose_type: Any, *args: Any, **kwargs: Any) -> Any:
    """Compute an operation in the type that it should have."""
    tensors = [tensor for tensor in list_tensors((args, *kwargs.values())) if is_eligible(tensor)]
    dtype = choose_type(tensors) if tensors else None
    with torch._C._ExcludeDispatchKeyGuard(torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastCUDA)):
        if dtype is None:
            return func(*args, **kwargs)
        change = functools.partial(cast, dtype)
        return func(*convert(change, args), **{key: convert(change, kwargs[key]) for key in kwargs})


def is_eligible(value: Any) -> bool:
    """Return whether autocast changes the type of a tensor; it leaves float64."""
    if not isinstance(value, Tensor) or not value.is_cuda:
        return False
    return value.dtype.is_floating_point and value.dtype != torch.float64


def cast(dtype: torch.dtype, value: Any) -> Any:
    """Return a tensor in this type; a weight is cast once."""
    if not is_eligible(value) or value.dtype == dtype:
        return value
    keeps = (
        value.requires_grad and value.is_leaf and dtype != torch.float32 and torch.is_autocast_cache_enabled()
    )
    if not keeps:
        return value.to(dtype)
    if id(value) not in CASTS:
        CASTS[id(value)] = value, value.to(dtype)
    return CASTS[id(value)][1]
