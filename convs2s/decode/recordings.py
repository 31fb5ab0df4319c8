"""Steps of a search as CUDA graphs: the host starts one operation in place of hundreds."""

import dataclasses
import threading
from collections.abc import Callable, Hashable, Iterator
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Int64
from torch import Tensor

from convs2s.ids.vocabulary import PAD

WIDTH = 8
"""Source lengths are rounded up to a multiple, so that many batches have the same shapes."""

Work = Callable[..., Any]


class Recordings:
    """The work of a model, recorded once for each kind of it and each shape of its tensors.

    A graph reads and writes the same memory each time it is replayed. So arguments are copied to the place
    where they were when it was recorded, and results must be read before other work of these recordings. On a
    CPU, which has no graphs, all is the same, but the work is done each time.

    Attributes:
        model: whose weights the work reads.
        lock: to be held while results are in use, as threads share their memory.
    """

    def __init__(self, model: Any) -> None:
        self.model = model
        self.lock = threading.Lock()
        self._places: dict[Hashable, list[Tensor]] = {}
        self._recorded: dict[Hashable, Callable[[], Any]] = {}
        self._stream: torch.cuda.Stream | None = None
        self._pool: Any = None

    def round_width(self, source: Int64[Tensor, "B S"]) -> Int64[Tensor, "B Z"]:
        """Return source sentences with padding up to a width that many batches have."""
        return F.pad(source, (0, -source.shape[1] % WIDTH), value=PAD)

    def round_size(self, sentences: int) -> int:
        """Return to how many so many sentences are filled up, so that many batches have the same shapes."""
        return 1 << (sentences - 1).bit_length()

    def run(self, work: Work, kind: Hashable, arguments: tuple[Any, ...]) -> Any:
        """Return work(*arguments); it must not wait for the device.

        Args:
            kind: differs for work that differs in more than its arguments.
            arguments: whatever is no tensor in them is recorded as it is.
        """
        leaves = list_leaves(arguments)
        tensors = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
        device = tensors[0].device
        shapes = tuple((tensor.shape, tensor.dtype) for tensor in tensors)
        fixed = tuple(None if isinstance(leaf, Tensor) else leaf for leaf in leaves)
        key = kind, shapes, fixed
        if key not in self._recorded and is_short_of_memory(device):
            self._places.clear()
            self._recorded.clear()
        if shapes not in self._places:
            self._places[shapes] = [tensor.clone() for tensor in tensors]
        for place, tensor in zip(self._places[shapes], tensors, strict=True):
            if place is not tensor:
                place.copy_(tensor)
        if key not in self._recorded:
            placed = replace_tensors(arguments, iter(self._places[shapes]))
            self._recorded[key] = self._record(lambda: work(*placed), device)
        return self._recorded[key]()

    def _record(self, work: Callable[[], Any], device: torch.device) -> Callable[[], Any]:
        """Return a function that does the work again, each time with the same memory."""
        if device.type != "cuda":
            return work
        with torch.cuda.device(device):
            if self._stream is None:
                self._stream, self._pool = torch.cuda.Stream(), torch.cuda.graph_pool_handle()
            self._stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(self._stream):
                work()  # libraries prepare themselves at first use, which cannot be recorded
            torch.cuda.current_stream().wait_stream(self._stream)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(
                graph, pool=self._pool, stream=self._stream, capture_error_mode="thread_local"
            ):
                results = work()

        def replay() -> Any:
            graph.replay()
            return results

        return replay


def is_short_of_memory(device: torch.device) -> bool:
    """Return whether less than a quarter of a GPU's memory is free, so that earlier recordings have to go."""
    if device.type != "cuda":
        return False
    torch.cuda.empty_cache()  # as recording does
    free, total = torch.cuda.mem_get_info(device)
    return free < total // 4


def list_leaves(value: Any) -> list[Any]:
    """Return what is in lists, tuples and dataclasses, at any depth: tensors, numbers, None.

    Raises:
        TypeError: for anything else, which may have tensors that a recording would not copy.
    """
    parts = list_parts(value)
    if parts is not None:
        return [leaf for part in parts for leaf in list_leaves(part)]
    if not isinstance(value, Tensor | int | float | None):
        raise TypeError(
            f"expected the memory and the state of a model to be of dataclasses, tuples, lists, tensors and "
            f"numbers, found {type(value).__name__}. Choose search: device, which records nothing."
        )
    return [value]


def replace_tensors(value: Any, tensors: Iterator[Tensor]) -> Any:
    """Return a value with its tensors, in the order of `list_leaves`, replaced by others."""
    if isinstance(value, Tensor):
        return next(tensors)
    parts = list_parts(value)
    if parts is None:
        return value
    replaced = [replace_tensors(part, tensors) for part in parts]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value)]
        return dataclasses.replace(value, **dict(zip(names, replaced, strict=True)))
    return replaced if isinstance(value, list) else tuple(replaced)


def list_parts(value: Any) -> list[Any] | None:
    """Return the items of a list or a tuple, or the fields of a dataclass; None for anything else."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [getattr(value, field.name) for field in dataclasses.fields(value)]
    return list(value) if isinstance(value, list | tuple) else None
