"""Speed of a training update: the fast layers compared with the plain ones, in both precisions.

It builds the models of some presets, with random weights and sentences of one length, and runs updates of all
variants in turns, with the preset's optimizer and learning rate. It prints target tokens per second of wall
and of processor time, medians over rounds, and the share of the speed of a plain matrix product: by processor
time on a CPU, by wall time on a GPU, where it also prints peak memory. --json also has spreads.
"""

import argparse
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec

import torch
from torch import nn

from benchmarks.fairseq_peer import FairseqVariant, fairseq_variant
from benchmarks.harness import (
    DTYPES,
    Report,
    add_common,
    fast_dtypes,
    flop_per_unit,
    product_peak,
    program,
    speeds_in_turns,
)
from benchmarks.synthetic import narrow, only_batch, queue_next, random_training
from convs2s.ids.batching import Batch
from convs2s.train.batch_update import finish_update
from convs2s.train.setup import keep_freed_memory
from convs2s.train.training import Training
from pipelines.preset import preset_params

VARIANTS = ("plain", "fast", "compiled", "fairseq")
COLUMNS = ("preset", "tokens", "variant", "tokens/s", "by processor time", "of products, %", "MiB")


@dataclass
class Variant:
    """A training of a model."""

    training: Training
    losses: nn.Module
    batch: Batch

    def update(self) -> int:
        """Make an update; return its target tokens."""
        self.training.model.train()
        learning_rate = self.training.learning_rate()
        loaded = self.training.load(self.batch)
        finish_update(self.training, queue_next(self.training, self.losses, loaded), loaded, learning_rate)
        return self.batch.target_tokens


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what is built and compared."""
    add = parser.add_argument
    add("--presets", nargs="+", default=["multi30k-en-de", "wmt14-en-de-paper"])
    add("--entries", type=int, help="vocabulary entries; by default the preset's")
    add("--channels", type=int, help="of all layers; by default the preset's")
    add("--tokens", type=int, nargs="+", default=[1000], help="per update, approximately")
    add("--variants", nargs="+", choices=VARIANTS, default=VARIANTS[:2])
    add("--precisions", nargs="+", choices=DTYPES, help="by default those that are fast")
    add("--updates", type=int, default=2, help="per round and variant")
    add_common(parser, "rounds", "device", threads=torch.get_num_threads())


def measure(options: argparse.Namespace, report: Report) -> None:
    """Measure all presets with all sizes of an update."""
    keep_freed_memory()
    device = torch.device(options.device)
    options.precisions = options.precisions or fast_dtypes(device)
    report.note(product_flop_per_second={name: product_peak(name, device) for name in options.precisions})
    report.table(COLUMNS)
    for preset in options.presets:
        for tokens in options.tokens:
            measure_preset(preset, tokens, device, options, report)


def measure_preset(
    preset: str, tokens: int, device: torch.device, options: argparse.Namespace, report: Report
) -> None:
    """Measure each variant of a preset."""
    ours = [path for path in options.variants if path != "fairseq"]
    names = [f"{path} {precision}" for precision in options.precisions for path in ours]
    if "fairseq" in options.variants and find_spec("fairseq") is not None:
        names = ["fairseq float32", *names]
    with ExitStack() as stack:
        variants = {name: build(preset, name, tokens, device, options, stack) for name in names}
        # From the plainest variant: library convolutions also compute positions that are then cut off.
        plainest = variants[min(names, key=lambda name: VARIANTS.index(name.split()[0]))]
        flop = flop_per_unit(plainest.update)
        memory = {name: peak_memory(variant, device) for name, variant in variants.items()}
        works = {name: partial(make_updates, variant, options.updates) for name, variant in variants.items()}
        measured = speeds_in_turns(works, options.rounds, device)
    timed_by = "per_second" if device.type == "cuda" else "per_processor_second"
    for name, speeds in measured.items():
        _, precision = name.split()
        share = speeds[timed_by]["median"] * flop / report.about["product_flop_per_second"][precision]
        bytes_used = memory[name]
        medians = [speeds[by]["median"] for by in ("per_second", "per_processor_second")]
        report.add(
            preset, tokens, name, *medians, 100 * share, "" if bytes_used is None else bytes_used >> 20,
            preset=preset, tokens=tokens, variant=name, target_tokens=speeds, share_of_products=share,
            flop_per_token=flop, peak_memory_bytes=bytes_used,
        )  # fmt: skip


def build(
    preset: str, name: str, tokens: int, device: torch.device, options: argparse.Namespace, stack: ExitStack
) -> Variant | FairseqVariant:
    """Return a training on a batch of so many random tokens, by the name of its path and precision."""
    path, precision = name.split()
    params = preset_params(preset)
    sizes = (
        options.entries or params.vocabulary.source_size,
        options.entries or params.vocabulary.target_size,
    )
    model = narrow(params.model, options.channels)
    # A training that is to be compiled has plain layers.
    changes = {"precision": precision, "compile": path != "fast"}
    training = stack.enter_context(random_training(preset, model, sizes, tokens, device, **changes))
    if path == "fairseq":
        return fairseq_variant(training, model, sizes, only_batch(training))
    losses = training.losses(0.0)
    if path == "compiled":
        losses.compile(dynamic=True)
    return Variant(training, losses, only_batch(training))


def make_updates(variant: Variant | FairseqVariant, count: int) -> float:
    """Make `count` updates; return their target tokens."""
    return sum(variant.update() for _ in range(count))


def peak_memory(variant: Variant | FairseqVariant, device: torch.device) -> int | None:
    """Make two updates; return the peak of additional bytes on the GPU."""
    if device.type != "cuda":
        return None
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    make_updates(variant, 2)
    return torch.cuda.max_memory_allocated() - before


main = program(__doc__, add_options, measure)

if __name__ == "__main__":
    main()
