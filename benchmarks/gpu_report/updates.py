"""Updates of batches of one shape: operation by operation, recorded (`train.graphs`), and compiled.

Shares are of the peak in the GPU's data sheet, and of a large product's speed, the most that an update can
reach. The start is the time to the end of the fourth update, until which torch.compile compiles; recorded
updates are recorded in the fourth. They are padded to 32 tokens a sentence, as are those compiled per shape.
Version 1.0.0 lists the tokens of the target. The loss in parts is what a training has once memory is short.
Before the table, losses and gradient norms of four updates without dropout are compared.
"""

import argparse
import gc
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor

from benchmarks.gpu_report.shared import median_seconds, part
from benchmarks.gpu_report.training import build_random, load_batch
from benchmarks.harness import Report, flop_per_unit, product_peak
from benchmarks.synthetic import queue_next
from convs2s.train.loss import softmax_loss
from convs2s.train.loss_in_parts import LossInParts
from convs2s.train.training import Training

VARIANTS = ("version 1.0.0", "default", "in parts", "recorded", "compiled", "compiled per shape")
PEAKS = {"H100": 989e12, "H200": 989e12, "A100": 312e12, "L40S": 362e12, "L4": 121e12, "B200": 2250e12}
"""FLOP/s in bfloat16 by the data sheets, of dense products; by a part of the GPU's name."""
CHECKED = 4


@contextmanager
def build(
    preset: str,
    tokens: int,
    variant: str,
    device: torch.device,
    toy: bool,
    **changes: Any,
) -> Iterator[tuple[Training, Callable[[], Tensor]]]:
    """Build a training; yield it and what queues an update and returns the loss, and the norm last."""
    is_padded = variant in ("recorded", "compiled per shape") and device.type == "cuda"
    with build_random(preset, tokens, device, toy, graphs=is_padded, **changes) as training:
        training.lists_tokens = variant == "version 1.0.0"
        training.softmax = LossInParts() if variant == "in parts" else softmax_loss
        losses = training.losses(0.0).train()
        loaded = load_batch(training)
        if "compiled" in variant:
            training.recorded = None
            losses.compile(dynamic="per shape" not in variant)
        yield training, lambda: queue_next(training, losses, loaded)


def compare(preset: str, variants: Sequence[str], device: torch.device, toy: bool, report: Report) -> None:
    """Compare losses and norms of a few updates, without dropout, with those of the plain layers."""
    found = {}
    for variant in dict.fromkeys(["version 1.0.0", *variants]):
        changes = {"precision": "float32", "dropout": 0.0}
        with build(preset, 100 if toy else 1000, variant, device, toy, **changes) as (_, update):
            values = [update()[[0, -1]].double().cpu() for _ in range(CHECKED)]
        found[variant] = torch.stack(values)
    expected = found["version 1.0.0"]
    for variant in variants:
        difference = float(((found[variant] - expected) / expected).abs().max())
        report.add(preset=preset, variant=variant, difference=difference)


def measure_update(
    preset: str, tokens: int, variant: str, large: float, device: torch.device, toy: bool, report: Report
) -> None:
    """Measure updates of one size."""
    gc.collect()
    torch._dynamo.reset()
    on_gpu = device.type == "cuda"
    if on_gpu:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    start = time.perf_counter()
    with build(preset, tokens, variant, device, toy) as (training, update):
        for _ in range(CHECKED):
            update()[0].item()
        started = time.perf_counter() - start
        seconds = median_seconds(update, device, 9)
        made = load_batch(training).batch.target_tokens
    flop = made * flop_per_token(preset, device, toy)
    name = torch.cuda.get_device_name() if on_gpu else ""
    peak = next((peak for part, peak in PEAKS.items() if part in name), None)
    report.add(
        preset=preset, tokens=tokens, variant=variant, ms=1e3 * seconds, tokens_per_second=made / seconds,
        tflops=flop / seconds / 1e12, of_peak="" if peak is None else 100 * flop / seconds / peak,
        of_large_product=100 * flop / seconds / large,
        mib=torch.cuda.max_memory_allocated() >> 20 if on_gpu else "", start_seconds=started,
    )  # fmt: skip


FLOP: dict[str, float] = {}


def flop_per_token(preset: str, device: torch.device, toy: bool) -> float:
    """Return the FLOP of an update's products for a target token."""
    if preset not in FLOP:
        with build(preset, 100, "version 1.0.0", device, toy) as (training, update):
            tokens = load_batch(training).batch.target_tokens

            def work() -> float:
                update()
                return tokens

            FLOP[preset] = flop_per_unit(work)
    return FLOP[preset]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the variants and sizes."""
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=VARIANTS)
    parser.add_argument("--tokens", nargs="+", type=int, default=[16000, 4000, 64000], help="of an update")


def measure(options: argparse.Namespace, device: torch.device, report: Report) -> None:
    """Compare, then measure all sizes of an update."""
    toy = options.toy
    large = product_peak("bfloat16", device, toy=toy)
    presets = ["multi30k-en-de"] if toy else ["multi30k-en-de", "wmt14-en-de-paper"]
    eager = [variant for variant in options.variants if "compiled" not in variant]
    if eager:
        columns: Sequence[str] = ("preset", "variant", "difference")
        report.table(columns, "Largest relative difference to version 1.0.0, in float32")
        for preset in presets:
            report.attempt(partial(compare, preset, eager, device, toy, report))
    columns = ("preset", "tokens", "variant", "ms", "tokens/s", "TFLOP/s", "of the peak, %",
               "of a large product, %", "MiB", "start, s")  # fmt: skip
    report.table(columns, f"Updates in bfloat16; a large product reaches {large / 1e12:.3g} TFLOP/s")
    for tokens in (100,) if toy else options.tokens:
        for preset in presets:
            for variant in options.variants:
                report.attempt(partial(measure_update, preset, tokens, variant, large, device, toy, report))


main = part(__doc__, measure, add_options)

if __name__ == "__main__":
    main()
