"""Updates that are recorded as CUDA graphs: the host starts one operation instead of a thousand.

A GPU computes an update of 48 sentences (§4.2) in less time than the host takes to start its operations. A
recording starts at once, but only for the shapes and in the memory that it was made with. So lengths are
padded up to multiples of 8, and ids and numbers are copied to where the recording reads them.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from convs2s.base.messages import is_out_of_memory

MULTIPLE = 8
"""Lengths are padded up to multiples of it. Of 92,834 updates of 48 sentences with lengths as in WMT's, 28
shapes then cover 90 %, and 107 cover 99 %; with MOST_IDS, 44 recordings make 92 % of the updates."""
PLAIN_UPDATES = 3
"""So many updates of a shape are made before it is recorded. They load the kernels that it needs, which must
not happen in a recording; and recording costs about as much as an update, which rare shapes do not repay."""
MOST_IDS = 3072
"""Of a side of a part; with more, updates are not recorded. From there on PyTorch sorts the ids for an
embedding's gradients, for which the host may have to wait (pytorch/pytorch#82886)."""
MOST_RECORDINGS = 128
"""Each also takes memory of the GPU for its operations, 1,000 to 2,000."""
LEAST_FREE = 0.25
"""Share of the GPU's memory that must be free for another recording."""

Ids = tuple[Tensor, Tensor]
"""Source and target of the padded pairs of a part, (B, S) and (B, T)."""
Result = tuple[Tensor, Tensor]
Update = Callable[[Sequence[Ids], Tensor], Result]
"""Makes an update on the parts of a batch, with the numbers in which updates differ."""
Shapes = tuple[torch.Size, ...]


@dataclass(frozen=True)
class Recording:
    """A recorded update, and the tensors that it reads and writes.

    Attributes:
        graph: a torch.cuda.CUDAGraph.
    """

    parts: Sequence[Ids]
    numbers: Tensor
    result: Result
    graph: Any


class RecordedUpdates:
    """Makes the updates of a GPU: replays recordings of frequent shapes, and runs the others as they are.

    A replay repeats what an update got from Python, so whatever changes must be in its tensors. Dropout need
    not: a replay reads the seed of the device's generator, and draws the masks that the update itself would
    draw after the same torch.manual_seed.

    Recordings share their memory, about as much as the largest needs; the other updates have their own. None
    may be dropped before the others: what PyTorch then frees, others on the same stream still use
    (pytorch/pytorch#193402). So there is a stream for these alone.
    """

    def __init__(self) -> None:
        self.plain: Counter[Shapes] = Counter()
        self.recordings: dict[Shapes, Recording] = {}
        self.most = MOST_RECORDINGS
        self._is_recording = False
        self._stream: Any = None  # a torch.cuda.Stream

    @property
    def take_memory(self) -> bool:
        """Whether there are recordings, or the last one failed before its end."""
        return bool(self.recordings) or self._is_recording

    def stop(self) -> None:
        """Drop all recordings, and make no more. The GPU must have done what was replayed."""
        self.recordings.clear()
        self.most, self._is_recording = 0, False

    def make(self, update: Update, parts: Sequence[Ids], numbers: Float[Tensor, "N"]) -> Result:
        """Make an update; the next one may overwrite its result."""
        shapes = tuple(ids.shape for part in parts for ids in part)
        recording = self.recordings.get(shapes)
        if recording is None:
            if not self.is_due(shapes, numbers.device):
                self.plain[shapes] += 1
                return update(parts, numbers)
            recording = self.recordings[shapes] = self.record(update, parts, numbers)
        for places, part in zip(recording.parts, parts, strict=True):
            for place, ids in zip(places, part, strict=True):
                place.copy_(ids)
        recording.numbers.copy_(numbers)
        recording.graph.replay()
        return recording.result

    def is_due(self, shapes: Shapes, device: torch.device) -> bool:
        """Return whether updates of these shapes shall be recorded now."""
        if self.plain[shapes] < PLAIN_UPDATES or len(self.recordings) >= self.most:
            return False
        if max(shape.numel() for shape in shapes) > MOST_IDS:
            return False
        free, total = torch.cuda.mem_get_info(device)
        return free >= LEAST_FREE * total

    def record(self, update: Update, parts: Sequence[Ids], numbers: Tensor) -> Recording:
        """Record an update, without making it.

        Raises:
            ValueError: if it cannot be recorded, for example as an edited model waits for the GPU.
        """
        places = [(source.clone(), target.clone()) for source, target in parts], numbers.clone()
        graph = torch.cuda.CUDAGraph()
        # One is replayed at a time, and its result is read before the next, so they can share their memory.
        pool = next((recording.graph.pool() for recording in self.recordings.values()), None)
        # Other threads, such as one that writes a checkpoint, may call CUDA meanwhile.
        self._stream = self._stream or torch.cuda.Stream()
        self._is_recording = True
        try:
            with torch.cuda.graph(graph, pool, self._stream, capture_error_mode="thread_local"):
                result = update(*places)
        except RuntimeError as error:
            if is_out_of_memory(error):
                raise
            raise ValueError(
                f"train.graphs: an update could not be recorded: {str(error).splitlines()[0]} Expected a "
                "model that never waits for the GPU in an update, as .item() does. Remove what waits, or set "
                "train.graphs: false."
            ) from error
        self._is_recording = False
        return Recording(*places, result, graph)
