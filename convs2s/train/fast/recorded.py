"""Updates on a GPU, recorded as CUDA graphs: the host launches one operation instead of a thousand.

A recorded update repeats the same operations on the same memory, so it works only for batches of one shape.
The numbers of sentences, positions and target tokens are therefore rounded up to a few sizes. The additions
are padding, which changes neither the loss nor the gradients (§4.2).
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from convs2s.text.vocabulary.vocabulary import EOS, PAD
from convs2s.train.random_numbers import seed_generators

Result = TypeVar("Result")
Shape = tuple[int, int, int, int]
"""Sentences, source positions, target positions, target tokens."""
Limits = tuple[int | None, int | None]
"""Sizes of the source and the target position table; None if unlimited."""

SWITCH = "CONVS2S_RECORD"
GRAPHS = 256  # each holds a few MB; most of the frequent shapes recur early
SIZES = 8  # from one power of two to the next, so at most an eighth is added


Update = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]
"""Source (B, S), target (B, T), positions (N), loss scale, learning rate -> loss and gradient norm; reads
nothing else that changes between updates."""
Recorder = Callable[[Callable[[], Tensor]], tuple[Callable[[], object], Tensor]]
"""Records work without running it; returns a function that runs it, and the tensor that gets its result."""


class CudaGraphs:
    """Records work as CUDA graphs, which share memory because only one runs at a time."""

    def __init__(self) -> None:
        self.pool = torch.cuda.graph_pool_handle()

    def __call__(self, work: Callable[[], Tensor]) -> tuple[Callable[[], object], Tensor]:
        """Return the graph's replay and the work's result, to be read before the next replay of any graph."""
        graph, stream = torch.cuda.CUDAGraph(), torch.cuda.current_stream()
        try:
            with torch.cuda.graph(graph, pool=self.pool):
                result = work()
        finally:
            torch.cuda.set_stream(stream)  # a failed recording leaves the capture stream current
        return graph.replay, result


def rounded_size(count: int) -> int:
    """Return the smallest of the allowed sizes that is at least `count`."""
    step = max(1, (1 << max(0, count - 1).bit_length()) // (2 * SIZES))
    return -(-count // step) * step


def static_arrays(
    source: NDArray[np.int64], target: NDArray[np.int64], limits: Limits
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return padded source, target and indices of the target's tokens, with one of a few shapes.

    Added sentences consist of EOS on the source side, and of padding on the target side. Added indices point
    to padding, which the loss does not count.

    Args:
        source: (B, S), padded.
        target: (B, T), padded.
        limits: the numbers of positions are not rounded up beyond these.
    """
    sides = []
    for ids, limit in zip((source, target), limits, strict=True):
        wanted = rounded_size(ids.shape[1])
        columns = wanted if limit is None else max(ids.shape[1], min(wanted, limit))
        added = rounded_size(len(ids)) - len(ids), columns - ids.shape[1]
        sides.append(np.pad(ids, [(0, extra) for extra in added], constant_values=PAD))
    wide_source, wide_target = sides
    wide_source[len(source) :, 0] = EOS
    (real,), (padding,) = (np.nonzero(found.ravel()) for found in (wide_target != PAD, wide_target == PAD))
    extra = min(rounded_size(len(real)), wide_target.size) - len(real)
    return wide_source, wide_target, np.concatenate([real, np.repeat(padding[:1], extra)])


@dataclass
class Recording:
    """A recorded update.

    Attributes:
        ids: memory for the update's token ids and positions, concatenated.
        numbers: memory for the loss scale and the learning rate.
        replay: makes the update.
        result: memory for its result.
    """

    ids: Int[Tensor, "L"]
    numbers: Float[Tensor, "2"]
    replay: Callable[[], object]
    result: Float[Tensor, "2"]


@dataclass
class RecordedUpdates:
    """Makes updates: computes those of a new shape, and replays a recording for shapes seen before.

    Both give the same numbers, so resuming without recordings does not change the course of a training.

    Attributes:
        record: None to compute all updates.
    """

    update: Update
    device: torch.device
    limits: Limits
    record: Recorder | None
    seen: set[Shape] = field(default_factory=set)
    recordings: dict[Shape, Recording] = field(default_factory=dict)

    def __call__(
        self,
        source: NDArray[np.int64],
        target: NDArray[np.int64],
        scale: float,
        learning_rate: float,
        seed: int,
    ) -> Float[Tensor, "2"]:
        """Queue the update of one batch on the device; return the loss and the gradient norm.

        Args:
            source: (B, S), padded.
            target: (B, T), padded.
            scale: factor of the loss, before backward.
            learning_rate: of this update.
            seed: of its random numbers.
        """
        arrays = static_arrays(source, target, self.limits)
        shape = (*arrays[0].shape, arrays[1].shape[1], len(arrays[2]))
        ids = pinned(np.concatenate([array.ravel() for array in arrays]), self.device)
        numbers = pinned(np.array([scale, learning_rate], np.float32), self.device)
        if shape in self.seen and shape not in self.recordings and len(self.recordings) < GRAPHS:
            self._try_to_record(shape, len(ids))
        self.seen.add(shape)
        if shape not in self.recordings:
            return self.make_way_for(lambda: self._compute(ids, numbers, shape, seed))
        recording = self.recordings[shape]
        recording.ids.copy_(ids, non_blocking=True)
        recording.numbers.copy_(numbers, non_blocking=True)
        seed_generators(seed)
        recording.replay()
        return recording.result

    def _compute(self, ids: Tensor, numbers: Tensor, shape: Shape, seed: int) -> Float[Tensor, "2"]:
        ids, numbers = (tensor.to(self.device, non_blocking=True) for tensor in (ids, numbers))
        seed_generators(seed)
        return self.update(*split_ids(ids, shape), *numbers.unbind())

    def make_way_for(self, work: Callable[[], Result]) -> Result:
        """Run work that is not recorded; if it runs out of memory, drop the recordings and run it again."""
        try:
            return work()
        except torch.OutOfMemoryError as error:
            if not self.recordings:
                raise
            self._stop_recording("Recorded updates leave too little memory for other work", error)
            self.recordings.clear()
        if self.device.type == "cuda":
            torch.cuda.empty_cache()
        return work()

    def _try_to_record(self, shape: Shape, length: int) -> None:
        """Record the update of a shape; if that fails, print a warning and stop recording."""
        if self.record is None:
            return
        ids = torch.zeros(length, dtype=torch.int64, device=self.device)
        numbers = torch.zeros(2, device=self.device)
        try:
            replay, result = self.record(lambda: self.update(*split_ids(ids, shape), *numbers.unbind()))
        except RuntimeError as error:
            self._stop_recording("An update could not be recorded", error)
        else:
            self.recordings[shape] = Recording(ids, numbers, replay, result)

    def _stop_recording(self, problem: str, error: RuntimeError) -> None:
        """Print a warning, and from now on compute updates of shapes not recorded so far."""
        self.record = None
        print(
            f"Warning: {problem} ({first_cause(error)}). Training continues without new recordings: the "
            f"results are the same, but updates may be slower. If training still fails, set {SWITCH}=0.",
            file=sys.stderr,
        )


def first_cause(error: BaseException) -> str:
    """Return the first line of the first error: after a failure inside a recording, ending it fails too."""
    while error.__context__ is not None:
        error = error.__context__
    return str(error).partition("\n")[0]


def pinned(array: NDArray[np.generic], device: torch.device) -> Tensor:
    """Return an array as a host tensor whose copy to the device does not block the host."""
    tensor = torch.from_numpy(array)
    # A copy to a GPU is asynchronous only from pinned memory.
    return tensor if device.type == "cpu" else tensor.pin_memory()


def split_ids(
    ids: Int[Tensor, "L"], shape: Shape
) -> tuple[Int[Tensor, "B S"], Int[Tensor, "B T"], Int[Tensor, "N"]]:
    """Return source, target and positions, which `ids` holds concatenated."""
    sentences, source, target, tokens = shape
    parts = ids.split([sentences * source, sentences * target, tokens])
    return parts[0].view(sentences, source), parts[1].view(sentences, target), parts[2]
