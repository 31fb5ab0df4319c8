"""The number of GPU operations in a training update, by name; needs no GPU.

`python -m benchmarks.launches` makes an update of a preset's model on tensors with shapes but no content,
with the plain layers, with those for GPUs, and by replaying a recording of the latter. A GPU takes a few
microseconds to start an operation, so it idles in an update of many small ones. An operation counts as one
launch, with these exceptions: views and allocations as none, a convolution as two and its gradient as three
(product, weights, bias), and an operation over a list of tensors as one per 320 blocks of 65,536 elements.
Some, such as the gradient of an embedding, take more than is counted.
"""

import argparse
import math
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from benchmarks.machine import machine, print_table, write_report
from benchmarks.train_step import random_training
from convs2s.train import loss
from convs2s.train.batch_update import queue_update, static_updates
from convs2s.train.fast.loss import GpuSummedLoss
from convs2s.train.fast.switch import few_operations
from convs2s.train.loss import SummedLoss
from convs2s.train.optimizer import Nesterov
from convs2s.train.training import Training

SEVERAL = {"convolution": 2, "convolution_backward": 3}
FREE = {
    "device",
    "_record_function_enter_new",
    "_record_function_exit",
    "empty",
    "empty_like",
    "empty_strided",
    "new_empty",
    "new_empty_strided",
    "_unsafe_view",
    "lift_fresh",
}
BLOCK, BLOCKS = 65_536, 320
"""Elements per block, and blocks per launch, of PyTorch's operations over lists of tensors."""
PATHS = ("plain", "for GPUs", "recorded")


class Launches(TorchDispatchMode):
    """Counts launches by operation."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.counts: Counter[str] = Counter()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        name = func.overloadpacket.__name__
        if not func.is_view and name not in FREE:
            self.counts[name] += launches(name, args)
        return func(*args, **(kwargs or {}))

    def record(self, work: Callable[[], torch.Tensor]) -> tuple[Callable[[], object], torch.Tensor]:
        """Record work like a CUDA graph: the host launches a replay as one operation."""
        return lambda: self.counts.update({"replay": 1}), work()


def launches(name: str, args: tuple[Any, ...]) -> int:
    """Return the number of launches of an operation."""
    if not name.startswith(("_foreach", "_fused")):
        return SEVERAL.get(name, 1)
    elements = sum(one.numel() for one in tree_leaves(args[0]) if isinstance(one, torch.Tensor))
    return max(1, math.ceil(elements / (BLOCK * BLOCKS)))


def without_content(training: Training, mode: FakeTensorMode) -> None:
    """Replace a training's parameters with tensors that have only shapes."""
    for module in training.model.modules():
        for name, parameter in module.named_parameters(recurse=False):
            setattr(module, name, nn.Parameter(mode.from_tensor(parameter.detach())))
    training.optimizer = Nesterov(training.model.parameters(), 0.99)


def count(training: Training, path: str) -> Counter[str]:
    """Return the launches of the training's third update; the first one creates the optimizer's state."""
    (batch,) = training.batching.epoch(
        training.train.source.lengths, training.train.target.lengths, seed=1, epoch=0
    )
    as_on_a_gpu = patch.object(loss, "SCORES_AT_ONCE", loss.SCORES_AT_ONCE_ELSEWHERE)
    with as_on_a_gpu, FakeTensorMode(allow_non_fake_inputs=True) as mode:
        without_content(training, mode)
        losses = SummedLoss(training.model.train(), training.smoothing)
        if path != "plain":
            few_operations(training.model)
            losses = GpuSummedLoss(training.model, training.smoothing)
        found = Launches()
        made = static_updates(training, losses, found.record) if path == "recorded" else None
        for _ in range(2):
            queue_update(training, losses, batch, None, 0.1, made)
        found.counts.clear()
        with found:
            queue_update(training, losses, batch, None, 0.1, made)
    return found.counts


def main() -> None:
    """Count, print and write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.launches")
    parser.add_argument("--preset", default="wmt14-en-de-paper")
    parser.add_argument("--tokens", type=int, default=1000, help="of a part")
    parser.add_argument("--parts", type=int, default=1, help="of a batch")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found = {}
    for path in PATHS:
        with tempfile.TemporaryDirectory() as folder:
            training = random_training(
                options.preset, Path(folder), "bfloat16", options.tokens, options.parts
            )
            found[path] = count(training, path)
    names = sorted(set().union(*found.values()), key=lambda name: -found["plain"][name])
    print_table(
        ("operation", *found),
        [
            *((name, *(counts[name] for counts in found.values())) for name in names),
            ("all", *(counts.total() for counts in found.values())),
        ],
    )
    if options.json:
        about = {
            "machine": machine(),
            **{key: value for key, value in vars(options).items() if key != "json"},
        }
        write_report(
            options.json, about, [{"path": path, "launches": counts} for path, counts in found.items()]
        )


if __name__ == "__main__":
    main()
