"""How fast a device multiplies matrices of this model's sizes, next to large ones, an update's limit.

Each linear map takes three products for a batch: forward, the gradient of its input, and that of its weight.
The products of the attention are left out: they are small.
"""

import argparse
from collections import Counter
from functools import partial

import torch
from torch import nn

from benchmarks.gpu_report.shared import device_seconds, part
from benchmarks.gpu_report.training import model_params
from benchmarks.harness import DTYPES, Report, product_peak
from convs2s.ids.vocabulary import PAD
from convs2s.model.seq2seq import Seq2Seq


def list_maps(preset: str, toy: bool) -> Counter[tuple[int, int]]:
    """Return inputs and outputs of a model's linear maps, with the number of maps that have them."""
    params, entries = model_params(preset, toy)
    with torch.device("meta"):
        model = Seq2Seq(params, entries, entries, PAD, 0.0)
    return Counter((m.in_features, m.out_features) for m in model.modules() if isinstance(m, nn.Linear))


def measure_update(
    preset: str, tokens: int, large: float, device: torch.device, toy: bool, report: Report
) -> None:
    """Measure all products of an update."""
    report.table(
        ("inputs, outputs", "maps", "forward", "gradient of the input", "of the weight"),
        f"Products of {preset}, {tokens:,} tokens, bfloat16, in TFLOP/s",
    )
    total_flop = total_seconds = 0.0
    for (inputs, outputs), count in sorted(list_maps(preset, toy).items()):
        x, weight, y = (
            torch.randn(shape, device=device).bfloat16()
            for shape in ((tokens, inputs), (outputs, inputs), (tokens, outputs))
        )
        flop = 2.0 * tokens * inputs * outputs
        works = (lambda: x @ weight.T, lambda: y @ weight, lambda: y.T @ x)  # noqa: B023
        seconds = [device_seconds(work, device) for work in works]
        rates = [flop / each / 1e12 for each in seconds]
        total_flop += 3 * count * flop
        total_seconds += count * sum(seconds)
        report.add(
            map=f"{inputs}, {outputs}", maps=count, forward=rates[0], input_gradient=rates[1],
            weight_gradient=rates[2],
        )  # fmt: skip
    share = total_flop / total_seconds / large
    report.add(
        f"all: {1e3 * total_seconds:.1f} ms, {100 * share:.0f} % of a large product's speed", "", "", "", "",
        map="all", ms=1e3 * total_seconds, tflops=total_flop / total_seconds / 1e12, share=share,
    )  # fmt: skip


def measure(options: argparse.Namespace, device: torch.device, report: Report) -> None:
    """Measure large products, then those of some models and sizes of an update."""
    report.table(("precision", "TFLOP/s"), "Large products, TFLOP/s")
    large = {name: product_peak(name, device, toy=options.toy) for name in DTYPES}
    for name, rate in large.items():
        report.add(precision=name, tflops=rate / 1e12)
    presets = ["tatoeba-en-de"] if options.toy else ["wmt14-en-de-paper", "multi30k-en-de"]
    for preset in presets:
        for tokens in (64,) if options.toy else (16000, 4000, 64000):
            speed = large["bfloat16"]
            report.attempt(partial(measure_update, preset, tokens, speed, device, options.toy, report))


main = part(__doc__, measure)

if __name__ == "__main__":
    main()
