"""CUDA graphs of a pretended GPU: recorded operations, which a replay repeats in the same memory."""

import itertools
import threading
import weakref
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload

from tests.pretended_gpu.state import STATE, Allocation, current_stream
from tests.pretended_gpu.tensors import DeviceTensor, list_tensors

HANDLES = itertools.count(1)
POOLS: dict[Any, int] = {}
"""The number of graphs that use a pool; PyTorch refuses one whose graphs have all been dropped."""


class Graph:
    """A graph, as `torch.cuda.CUDAGraph`.

    Attributes:
        own: memory that was allocated during the capture, and that the graph keeps, by its storage's key.
        inputs: memory that was there before; it must not be freed.
        saved: what memory of the inputs has to be again after the capture, which computes nothing.
    """

    def __init__(self, keep_graph: bool = False) -> None:
        self.operations: list[tuple[OpOverload, Any, Any, Any]] = []
        self.own: dict[int, Allocation] = {}
        self.inputs: weakref.WeakSet[Allocation] = weakref.WeakSet()
        self.input_count = 0
        self.saved: dict[int, tuple[torch.UntypedStorage, torch.UntypedStorage]] = {}
        self.pool_handle: Any = None
        self.is_captured = self.is_broken = False

    def capture_begin(self, pool: Any = None, capture_error_mode: str = "global", **_: object) -> None:
        """Begin to record what this thread does."""
        if current_stream().is_default:
            raise RuntimeError("CUDA graphs must be captured on a non-default stream.")
        if STATE.capture is not None or self.is_captured:
            raise RuntimeError("expected no other capture, and a graph that has none")
        self.pool_handle = (0, next(HANDLES)) if pool is None else pool
        if POOLS.get(self.pool_handle) == 0:
            raise RuntimeError(
                "use_count > 0 INTERNAL ASSERT FAILED: all graphs of this pool have been dropped"
            )
        POOLS[self.pool_handle] = POOLS.get(self.pool_handle, 0) + 1
        weakref.finalize(self, drop_pool, self.pool_handle).atexit = False
        self.mode, self.thread = capture_error_mode, threading.get_ident()
        self.random = torch.get_rng_state()
        STATE.capture = self

    def capture_end(self) -> None:
        """End to record, and undo what the operations have computed: a capture only records."""
        STATE.capture = None
        torch.set_rng_state(self.random)
        for leaf in list_tensors([result for _, _, _, result in self.operations]):
            if leaf.untyped_storage()._cdata in self.own:
                leaf.untyped_storage().fill_(255)  # type: ignore[attr-defined]  # NaN, or -1
        for storage, before in self.saved.values():
            storage.copy_(before)
        self.saved.clear()
        if self.is_broken:
            raise RuntimeError("CUDA error: operation failed due to a previous error during capture")
        self.is_captured = True
        self.input_count = len(self.inputs)

    def keep(self, written: list[Tensor]) -> None:
        """Save what an operation is going to change, if the capture has not made it."""
        for tensor in written:
            storage = tensor.untyped_storage()
            if storage._cdata not in self.own and storage._cdata not in self.saved:
                self.saved[storage._cdata] = storage, storage.clone()

    def record(
        self, func: OpOverload, args: Any, kwargs: Any, result: Any, tensors: list[DeviceTensor]
    ) -> None:
        """Record an operation of tensors on a GPU, given by their values."""
        self.operations.append((func, args, kwargs, result))
        for tensor in tensors:
            if tensor.values.untyped_storage()._cdata not in self.own:
                self.inputs.add(tensor.allocation)

    def replay(self) -> None:
        """Compute all again, from what the same memory has now."""
        if not self.is_captured:
            raise RuntimeError("Called CUDAGraph::replay without a preceding successful capture.")
        if len(self.inputs) < self.input_count:
            raise RuntimeError("a graph is replayed after memory that it reads was freed")
        STATE.check_capture("a graph is replayed")
        STATE.counts.launches["graph"] += 1
        with torch.no_grad(), torch._C._DisableTorchDispatch():
            for func, args, kwargs, result in self.operations:
                again = func(*args, **kwargs)
                if not func.is_view:
                    for old, new in zip(list_tensors(result), list_tensors(again), strict=True):
                        if old is not new:
                            old.copy_(new)
        stream = current_stream()
        stream.clock += 1
        for allocation in [*self.own.values(), *self.inputs]:
            allocation.stream, allocation.clock = stream, stream.clock

    def reset(self) -> None:
        """Drop what was recorded."""
        self.operations.clear()
        self.own.clear()
        self.is_captured = False

    def pool(self) -> Any:
        """Return the handle of the memory that the graph uses, for other graphs."""
        return self.pool_handle

    def register_generator_state(self, generator: torch.Generator) -> None:
        """Let a replay draw new random numbers; this device's generator is the CPU's, which always does."""
        assert isinstance(generator, torch.Generator)


def drop_pool(handle: Any) -> None:
    """Count a graph that no longer uses a pool."""
    POOLS[handle] -= 1
