"""Counts of the operations that a device gets, taken on any device: on a GPU each is at least one launch.

They show what a GPU has to do without one. Dropout, several operations on a CPU, counts as the one that it is
on a GPU; views launch nothing and do not count.
"""

import contextlib
from collections import Counter
from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

WAITS = {"_local_scalar_dense", "nonzero", "equal", "is_nonzero", "masked_select", "_unique2", "unique_dim",
         "unique_consecutive", "bincount", "repeat_interleave"}  # fmt: skip
"""Operations whose result, or its size, the host must have before it continues: it waits for all queued work.

repeat_interleave waits only if it is not told the size.
"""
SILENT = {
    "empty",
    "empty_like",
    "empty_strided",
    "new_empty",
    "new_empty_strided",
    "_unsafe_view",
    "lift_fresh",
}
"""Operations that are no views but launch nothing either."""


class Operations(TorchDispatchMode):
    """Counts operations while it is entered.

    Attributes:
        launches: by name, without views.
        waits: by name; a mask as an index is among them, as only the device knows the size of the result.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.launches: Counter[str] = Counter()
        self.waits: Counter[str] = Counter()

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        name = function.overloadpacket.__name__.rstrip("_")
        is_wait = name in WAITS and (kwargs or {}).get("output_size") is None
        if is_wait or (name in ("index", "index_put") and has_mask(args[1:])):
            self.waits[name] += 1
        elif not function.is_view and name not in SILENT:
            self.launches[name] += 1
        return result


def has_mask(arguments: Any) -> bool:
    """Return whether any tensor among these is of truth values."""
    return any(isinstance(x, Tensor) and x.dtype == torch.bool for x in tree_leaves(arguments))


class OneDropout(TorchFunctionMode):
    """Makes dropout one operation on a CPU, as on a GPU."""

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if function is F.dropout:
            return drop(*args, **(kwargs or {}))
        return function(*args, **(kwargs or {}))


def drop(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Compute torch.nn.functional.dropout, never in place, by one operation."""
    return torch.native_dropout(input, p, train=True)[0] if training and p else input


@contextlib.contextmanager
def count_operations() -> Iterator[Operations]:
    """Count the operations of a block."""
    with OneDropout(), Operations() as operations:
        yield operations
