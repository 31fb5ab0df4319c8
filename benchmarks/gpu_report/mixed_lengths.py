"""Updates on sentences of all lengths, as in a training, where nearly every batch has a shape of its own.

Lengths are drawn like those of WMT. Speeds are of real target tokens, without padding. CUDA graphs need
batches of few shapes; their start is the recording of a graph for each shape.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from benchmarks.gpu_report.graphed_update import GraphedUpdate, PaddedBatch, cut_into_few_shapes
from benchmarks.gpu_report.results import Results, begin
from benchmarks.gpu_report.training import build_random
from convs2s.ids.batching import Batch
from convs2s.train.batch_update import finish_update, queue_update
from convs2s.train.training import Training

VARIANTS = ("as in a training", "few shapes, as graphs", "as in a training, compiled")
RATE = 0.1
Lengths = list[NDArray[np.int64]]


@dataclass(frozen=True)
class Way:
    """A way to make updates.

    Attributes:
        update: makes one from a batch, to its end; returns the batch's real target tokens.
        first: batches to begin with, which are not measured.
        batches: the measured ones.
        shapes: different ones in an epoch.
        padded: target tokens of an epoch, with padding.
    """

    update: Callable[[Any], int]
    first: Sequence[Any]
    batches: Sequence[Any]
    shapes: int
    padded: int


def draw_lengths(pairs: int) -> Lengths:
    """Return source and target lengths like those of WMT, EOS included."""
    random = np.random.default_rng(1)
    source = np.clip(random.lognormal(np.log(24), 0.62, pairs).round(), 2, 250)
    target = np.clip((source * np.exp(random.normal(0.03, 0.22, pairs))).round(), 2, 250)
    return [source.astype(np.int64), target.astype(np.int64)]


def as_in_a_training(training: Training, losses: nn.Module, count: int) -> Way:
    """Return the product's way."""

    def update(batch: Batch) -> int:
        loaded = training.load(batch)
        finish_update(training, queue_update(training, losses, loaded, RATE), loaded, RATE)
        return batch.target_tokens

    order = training.begin_pass()
    batches = list(islice(training.batching.share(order, 0), 2 * count))
    sizes = [(end - start, *order.lengths[start:end].max(axis=0).tolist()) for start, end in order.spans]
    padded = sum(sentences * target for sentences, _, target in sizes)
    return Way(update, batches[count:], batches[:count], len(set(sizes)), padded)


def as_graphs(training: Training, losses: nn.Module, lengths: Lengths, tokens: int, count: int) -> Way:
    """Return the way of batches of few shapes, each a CUDA graph."""
    graphed = GraphedUpdate(training, losses)

    def update(batch: PaddedBatch) -> int:
        source, target = (training.to_device(ids) for ids in batch.arrays(training.train))
        made = int(lengths[1][batch.sentences].sum())
        graphed.queue(source, target, made, RATE).tolist()
        return made

    batches = list(cut_into_few_shapes(lengths[0], lengths[1], tokens))
    order = np.random.default_rng(1).permutation(len(batches))
    shapes = {(batch.size, batch.source, batch.target): batch for batch in batches}
    twice = [batch for batch in shapes.values() for _ in range(2)]
    padded = sum(batch.size * batch.target for batch in batches)
    return Way(update, twice, [batches[i] for i in order[:count]], len(shapes), padded)


def measure(variant: str, tokens: int, device: torch.device, toy: bool, results: Results) -> None:
    """Measure the updates of a variant."""
    lengths = draw_lengths(300 if toy else 200_000)
    count = 3 if toy else 100
    preset = "tatoeba-en-de" if toy else "multi30k-en-de"
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
    with build_random(preset, tokens, device, toy, lengths=lengths) as training:
        is_compiled = variant.endswith("compiled")
        losses = training.losses(0.0).train()
        if is_compiled:
            losses.compile(dynamic=True)
        if variant == "few shapes, as graphs":
            way = as_graphs(training, losses, lengths, tokens, count)
        else:
            way = as_in_a_training(training, losses, count)
        begin = time.perf_counter()
        for batch in way.first:
            way.update(batch)
        started = time.perf_counter() - begin
        begin = time.perf_counter()
        made = sum(way.update(batch) for batch in way.batches)
        seconds = time.perf_counter() - begin
    real = int(lengths[1].sum())
    results.add(
        tokens=tokens, variant=variant, shapes=way.shapes, real_percent=100 * real / way.padded,
        tokens_per_second=made / seconds,
        mib=torch.cuda.max_memory_allocated() >> 20 if device.type == "cuda" else "", start_seconds=started,
    )  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    options, device, results = begin(__doc__, arguments)
    columns = ("tokens", "variant", "shapes in an epoch", "real tokens, %", "tokens/s", "MiB", "start, s")
    results.begin("Updates of multi30k-en-de's model on sentences of all lengths", columns)
    for tokens in (300,) if options.toy else (4000, 16000):
        for variant in VARIANTS[:2] if options.toy else VARIANTS:
            results.attempt(partial(measure, variant, tokens, device, options.toy, results))
    results.end()


if __name__ == "__main__":
    main()
