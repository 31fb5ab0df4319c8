"""Updates on a GPU, recorded as CUDA graphs: the host starts one operation instead of a thousand.

A recorded update repeats the same operations on the same memory, so it holds for batches of one shape.
Numbers of sentences, positions and target tokens are therefore rounded up to a few sizes. What is added is
padding, and changes neither the loss nor gradients (§4.2).
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
"""Positions of the source's and the target's position table; None for any number."""

SWITCH = "CONVS2S_RECORD"
GRAPHS = 256  # each keeps a few MB; most shapes that come up often recur early
SIZES = 8  # from one power of two to the next, so at most an eighth is added


Update = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]
"""Source (B, S), target (B, T), positions (N), loss scale, learning rate -> loss and gradient's norm; it
reads nothing else that changes between updates."""
Recorder = Callable[[Callable[[], Tensor]], tuple[Callable[[], object], Tensor]]
"""Records work without doing it; returns what does it, and where its result is to be found afterwards."""


class CudaGraphs:
    """Records work as CUDA graphs, which share their memory: one is done before the next begins."""

    def __init__(self) -> None:
        self.pool = torch.cuda.graph_pool_handle()

    def __call__(self, work: Callable[[], Tensor]) -> tuple[Callable[[], object], Tensor]:
        """Return the graph's replay and the work's result, to be read before the next replay of any graph."""
        graph, stream = torch.cuda.CUDAGraph(), torch.cuda.current_stream()
        try:
            with torch.cuda.graph(graph, pool=self.pool):
                result = work()
        finally:
            torch.cuda.set_stream(stream)  # a recording that fails leaves the capture stream current
        return graph.replay, result


def rounded_size(count: int) -> int:
    """Return the smallest of the few sizes that is not below a count."""
    step = max(1, (1 << max(0, count - 1).bit_length()) // (2 * SIZES))
    return -(-count // step) * step


def static_arrays(
    source: NDArray[np.int64], target: NDArray[np.int64], limits: Limits
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return padded source, target and positions of the target's tokens, of a shape from few.

    Sentences that are added consist of EOS on the source side, and of padding on the target's. Positions that
    are added point to padding, which the loss does not count.

    Args:
        source: (B, S), padded.
        target: (B, T), padded.
        limits: beyond which positions are not rounded up.
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
        ids: memory of the update's token ids and positions, one after the other.
        numbers: memory of the loss's scale and the learning rate.
        replay: makes the update.
        result: memory of its result.
    """

    ids: Int[Tensor, "L"]
    numbers: Float[Tensor, "2"]
    replay: Callable[[], object]
    result: Float[Tensor, "2"]


@dataclass
class RecordedUpdates:
    """Makes updates: of a new shape by computing it, of one seen before by replaying a recording.

    Both give the same numbers, so a training that resumes without recordings goes on as it would have.

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
        """Ask the device for the update of one batch; return the loss and the gradient's norm.

        Args:
            source: (B, S), padded.
            target: (B, T), padded.
            scale: of the loss, before backward.
            learning_rate: of this update.
            seed: of its random numbers.
        """
        arrays = static_arrays(source, target, self.limits)
        shape = (*arrays[0].shape, arrays[1].shape[1], len(arrays[2]))
        ids = pinned(np.concatenate([one.ravel() for one in arrays]), self.device)
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
        ids, numbers = (one.to(self.device, non_blocking=True) for one in (ids, numbers))
        seed_generators(seed)
        return self.update(*split_ids(ids, shape), *numbers.unbind())

    def make_way_for(self, work: Callable[[], Result]) -> Result:
        """Do work that is not recorded; if recordings leave too little memory for it, again without them."""
        try:
            return work()
        except torch.OutOfMemoryError as error:
            if not self.recordings:
                raise
            self._record_no_more("Recorded updates leave too little memory for other work", error)
            self.recordings.clear()
        if self.device.type == "cuda":
            torch.cuda.empty_cache()
        return work()

    def _try_to_record(self, shape: Shape, length: int) -> None:
        """Record the update of a shape; if that fails, say so and record no more."""
        if self.record is None:
            return
        ids = torch.zeros(length, dtype=torch.int64, device=self.device)
        numbers = torch.zeros(2, device=self.device)
        try:
            replay, result = self.record(lambda: self.update(*split_ids(ids, shape), *numbers.unbind()))
        except RuntimeError as error:
            self._record_no_more("An update could not be recorded", error)
        else:
            self.recordings[shape] = Recording(ids, numbers, replay, result)

    def _record_no_more(self, what: str, error: RuntimeError) -> None:
        """Say what happened, and from now on compute updates of shapes not recorded so far."""
        self.record = None
        print(
            f"Warning: {what} ({first_cause(error)}). Training goes on without more recordings: the results "
            f"are the same, but updates may take longer. If it fails nevertheless, set {SWITCH}=0.",
            file=sys.stderr,
        )


def first_cause(error: BaseException) -> str:
    """Return the first line of the first error: a recording's end fails, too, once something in it has."""
    while error.__context__ is not None:
        error = error.__context__
    return str(error).partition("\n")[0]


def pinned(array: NDArray[np.generic], device: torch.device) -> Tensor:
    """Return an array as a tensor on the host that can be copied to a device without waiting for it."""
    tensor = torch.from_numpy(array)
    # Only from pinned memory does a copy to a GPU wait for its turn there instead of here.
    return tensor if device.type == "cpu" else tensor.pin_memory()


def split_ids(
    ids: Int[Tensor, "L"], shape: Shape
) -> tuple[Int[Tensor, "B S"], Int[Tensor, "B T"], Int[Tensor, "N"]]:
    """Return source, target and positions, which lie one after the other."""
    sentences, source, target, tokens = shape
    parts = ids.split([sentences * source, sentences * target, tokens])
    return parts[0].view(sentences, source), parts[1].view(sentences, target), parts[2]
