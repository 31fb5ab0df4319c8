"""An update recorded as a CUDA graph, for which the host starts one operation instead of a thousand.

It is here to measure what a training would gain from this: the graph has the same losses, gradients and
optimizer step as `queue_update`, and each replay gets its batch and learning rate from tensors. What is not
measured: batches of a training have many shapes, and each shape needs a graph of its own, or padding.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from convs2s.train.optimizer import Nesterov
from convs2s.train.training import Training


class Recorded(NamedTuple):
    """The graph of an update, and the tensors that it reads and writes."""

    graph: torch.cuda.CUDAGraph
    inputs: tuple[Tensor, ...]
    result: Tensor


class GraphedUpdate:
    """Makes updates on batches of one shape: the first as it is, the second recorded, then replayed.

    On a CPU, all are made as they are.

    Raises:
        ValueError: with another optimizer than Nesterov's. Adam's count of updates is a number of Python's,
            which a graph would repeat.
    """

    def __init__(self, training: Training, losses: nn.Module) -> None:
        if not isinstance(training.optimizer, Nesterov):
            raise ValueError(
                "expected a preset with Nesterov's gradient: other optimizers cannot be recorded."
            )
        self.training, self.losses = training, losses
        self.recorded: Recorded | None = None
        self.is_first = True

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
        if self.is_first or not source.is_cuda:
            self.is_first = False
            return self.update(*inputs)
        if self.recorded is None:
            self.recorded = self.record(*(tensor.clone() for tensor in inputs))
        for place, tensor in zip(self.recorded.inputs, inputs, strict=True):
            place.copy_(tensor)
        self.recorded.graph.replay()
        return self.recorded.result

    def record(self, *inputs: Tensor) -> Recorded:
        """Record an update, without making it."""
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            result = self.update(*inputs)
        return Recorded(graph, inputs, result)

    def update(self, source: Tensor, target: Tensor, scale: Tensor, learning_rate: Tensor) -> Tensor:
        """Make an update."""
        half = self.training.state.precision == "bfloat16"
        with torch.autocast(source.device.type, torch.bfloat16, enabled=half):
            loss, _ = self.losses(source, target, None, None)
        (loss * scale).backward()
        norm = self.training.optimizer.update(learning_rate, self.training.params.clip_norm, 0)
        return torch.stack([loss.detach(), norm])
