"""Whole updates as CUDA graphs, for which the host starts one operation instead of a thousand.

A graph has fixed shapes, so batches must have few. This is only measured: in batches of few shapes, other
sentences share an update, and up to a seventh of the tokens is padding.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor, nn

from convs2s.ids.batching import Indices
from convs2s.ids.vocabulary import EOS, PAD
from convs2s.train.training import Pairs, Training

LONGEST_USUAL = 60
CLASSES = 32
QUANTILES = (0.25, 0.5, 0.75, 0.95, 1.0)


class Recorded(NamedTuple):
    """The graph of an update, and the tensors that it reads and writes."""

    graph: torch.cuda.CUDAGraph
    inputs: tuple[Tensor, ...]
    result: Tensor


class GraphedUpdate:
    """Makes updates: the first of a shape as it is, the second recorded, and replayed from then on.

    On a CPU, all are made as they are.

    Attributes:
        recorded: by the shapes of source and target.
    """

    def __init__(self, training: Training, losses: nn.Module) -> None:
        self.training, self.losses = training, losses
        self.recorded: dict[tuple[torch.Size, torch.Size], Recorded] = {}
        self.seen: set[tuple[torch.Size, torch.Size]] = set()

    def queue(
        self, source: Int[Tensor, "B S"], target: Int[Tensor, "B T"], tokens: int, learning_rate: float
    ) -> Float[Tensor, "2"]:
        """Queue an update on a batch with so many target tokens; return its loss and its gradient's norm.

        Dropout draws the same masks as in any update after the same torch.manual_seed: a graph that is
        replayed reads the generator's seed.
        """
        numbers = torch.tensor([1.0 / tokens, learning_rate])
        if source.is_cuda:
            numbers = numbers.pin_memory()
        scale, rate = numbers.to(source.device, non_blocking=True).unbind()
        inputs = source, target, scale, rate
        shapes = source.shape, target.shape
        if shapes not in self.seen or not source.is_cuda:
            self.seen.add(shapes)
            return self.update(*inputs)
        if shapes not in self.recorded:
            self.recorded[shapes] = self.record(*(tensor.clone() for tensor in inputs))
        recorded = self.recorded[shapes]
        for place, tensor in zip(recorded.inputs, inputs, strict=True):
            place.copy_(tensor)
        recorded.graph.replay()
        return recorded.result

    def record(self, *inputs: Tensor) -> Recorded:
        """Record an update, without making it; all graphs share memory, as one runs at a time."""
        pool = next((recorded.graph.pool() for recorded in self.recorded.values()), None)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=pool):
            result = self.update(*inputs)
        return Recorded(graph, inputs, result)

    def update(self, source: Tensor, target: Tensor, scale: Tensor, learning_rate: Tensor) -> Tensor:
        """Make an update."""
        half = self.training.state.precision == "bfloat16"
        with torch.autocast(source.device.type, torch.bfloat16, enabled=half):
            loss, _ = self.losses(source, target, None, None)
        (loss * scale).backward()
        norm = self.training.optimizer.update(learning_rate, self.training.params.clip_norm)
        return torch.stack([loss.detach(), norm])


class PaddedBatch(NamedTuple):
    """A batch of few shapes.

    Attributes:
        sentences: their indices.
        size: sentences that every batch of this shape has; the last ones may be empty.
        source, target: lengths that all are padded to.
    """

    sentences: Indices
    size: int
    source: int
    target: int

    def arrays(self, pairs: Pairs) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return padded ids; the source of an empty pair is EOS alone, its target nothing but padding."""
        source = np.full((self.size, self.source), PAD, dtype=np.int64)
        target = np.full((self.size, self.target), PAD, dtype=np.int64)
        source[:, 0] = EOS
        for row, sentence in enumerate(self.sentences.tolist()):
            for side, corpus in ((source, pairs.source), (target, pairs.target)):
                ids = corpus[sentence]
                side[row, : len(ids)] = ids
        return source, target


def cut_into_few_shapes(source: Indices, target: Indices, tokens: int) -> Iterator[PaddedBatch]:
    """Yield batches of sentences with these lengths, each of at most `tokens` padded tokens a side.

    Source lengths are divided into classes, each class into a few by target length.
    """
    ends = np.unique(np.quantile(source, np.linspace(0, 1, CLASSES + 1)[1:], method="higher"))
    longest = np.geomspace(LONGEST_USUAL, max(LONGEST_USUAL, source.max()), 8).astype(int)
    ends = np.unique([*ends[ends < LONGEST_USUAL], *longest[longest < source.max()], source.max()])
    classes = np.searchsorted(ends, source)
    for number, source_end in enumerate(ends.tolist()):
        members = np.flatnonzero(classes == number)
        if not len(members):
            continue
        target_ends = np.unique(np.quantile(target[members], QUANTILES, method="higher"))
        parts = np.searchsorted(target_ends, target[members])
        for part, target_end in enumerate(target_ends.tolist()):
            cell = members[parts == part]
            size = max(1, tokens // max(source_end, target_end))
            for start in range(0, len(cell), size):
                yield PaddedBatch(cell[start : start + size], size, source_end, target_end)
