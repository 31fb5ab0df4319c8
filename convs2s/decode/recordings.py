"""Steps of a search as CUDA graphs: the host starts one operation in place of hundreds."""

import dataclasses
import threading
from collections.abc import Callable, Hashable
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
            kind: differs for work that differs in more than the shapes of its arguments.
        """
        tensors = list_tensors(arguments)
        shapes = tuple((tensor.shape, tensor.dtype) for tensor in tensors)
        if shapes not in self._places:
            self._places[shapes] = [tensor.clone() for tensor in tensors]
        for place, tensor in zip(self._places[shapes], tensors, strict=True):
            if place is not tensor:
                place.copy_(tensor)
        if (kind, shapes) not in self._recorded:
            placed = replace_tensors(arguments, iter(self._places[shapes]))
            self._recorded[kind, shapes] = self._record(lambda: work(*placed), tensors[0].device)
        return self._recorded[kind, shapes]()

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


def list_tensors(value: Any) -> list[Tensor]:
    """Return the tensors in tuples and dataclasses, at any depth."""
    if isinstance(value, Tensor):
        return [value]
    return [tensor for part in list_parts(value) for tensor in list_tensors(part)]


def replace_tensors(value: Any, tensors: Any) -> Any:
    """Return a value with its tensors, in the order of `list_tensors`, replaced by those of an iterator."""
    if isinstance(value, Tensor):
        return next(tensors)
    parts = [replace_tensors(part, tensors) for part in list_parts(value)]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value)]
        return dataclasses.replace(value, **dict(zip(names, parts, strict=True)))
    return tuple(parts) if isinstance(value, tuple) else value


def list_parts(value: Any) -> list[Any]:
    """Return the items of a tuple or the fields of a dataclass; anything else has none."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [getattr(value, field.name) for field in dataclasses.fields(value)]
    return list(value) if isinstance(value, tuple) else []
