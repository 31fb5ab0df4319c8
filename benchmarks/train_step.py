"""Speed of a training update on the CPU: the fast paths beside the plain ones, in both precisions.

`python -m benchmarks.train_step` builds the models of two presets with random weights and sentences of one
length, and lets all variants make updates in turns. It prints target tokens per second of the clock and of
processor time, medians over rounds, and the share of the speed of a plain product of matrices. With --json it
writes all rounds.
"""

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.flop_counter import FlopCounterMode

from convs2s.text.corpus.batching import Batch
from convs2s.text.corpus.encoded import EncodedSentences, write_encoded
from convs2s.text.vocabulary.vocabulary import EOS, write_vocabulary
from convs2s.train.cost import cpu_name
from convs2s.train.distributed import Workers
from convs2s.train.fast.switch import summed_loss
from convs2s.train.loop import Training, _update
from convs2s.train.loss import SummedLoss
from convs2s.train.memory import keep_freed_memory
from convs2s.train.setup import build_training
from pipelines.preset.render import preset_params

SENTENCE = 26  # tokens, EOS included


@dataclass
class Variant:
    """A training of a model and its measurements: seconds of the clock and of processor time per update."""

    name: str
    training: Training
    losses: SummedLoss
    batches: Iterator[Batch]
    rounds: list[tuple[float, float]] = field(default_factory=list)

    def update(self) -> int:
        """Make an update; return its target tokens."""
        self.training.model.train()
        batch = next(self.batches)
        _update(self.training, self.losses, batch, 0.1)
        self.training.state.updates += 1
        return batch.target_tokens


def main() -> None:
    """Measure, print and write."""
    options = parse()
    keep_freed_memory()
    torch.set_num_threads(options.threads)
    peaks = {name: product_speed(getattr(torch, name)) for name in ("float32", "bfloat16")}
    machine = {"cpu": cpu_name(), "threads": options.threads, "torch": str(torch.__version__)}
    print(", ".join(f"{key} {value}" for key, value in machine.items()))
    results = []
    for preset in options.presets:
        with tempfile.TemporaryDirectory() as folder:
            flop, variants = build(preset, options.entries, Path(folder))
            measure(variants, options.rounds, options.updates)
        results += [row(preset, flop, peaks, one) for one in variants]
    show(results)
    if options.json:
        content = {"machine": machine, "product_flop_per_second": peaks, "results": results}
        options.json.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def parse() -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.train_step")
    parser.add_argument("--presets", nargs="+", default=["multi30k-en-de", "wmt14-en-de-paper"])
    parser.add_argument("--entries", type=int, help="vocabulary entries; by default the preset's")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--updates", type=int, default=2, help="per round and variant")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--json", type=Path)
    return parser.parse_args()


def product_speed(dtype: torch.dtype) -> float:
    """Return the FLOP per second of processor time of a product of large matrices, times the threads."""
    x, y = torch.randn(1024, 1536).to(dtype), torch.randn(1536, 1024).to(dtype)
    product, seconds = x @ y, []
    for _ in range(20):
        start = time.process_time()
        torch.mm(x, y, out=product)
        seconds.append(time.process_time() - start)
    return 2 * x.numel() * y.shape[1] / min(seconds) * torch.get_num_threads()


def build(preset: str, entries: int | None, folder: Path) -> tuple[float, list[Variant]]:
    """Return the FLOP per target token of products, and the trainings to compare."""
    params = preset_params(preset)
    sizes = entries or params.vocabulary.source_size, entries or params.vocabulary.target_size
    write_random(folder, sizes, max(1, 1000 // SENTENCE))
    variants = []
    for precision in ("float32", "bfloat16"):
        for fast in (False, True):
            train = params.train.model_copy(
                update={"precision": precision, "batch_by": "tokens", "max_tokens": 1000, "selection": None}
            )
            training = build_training(
                params.model, train, 1, folder / "encoded", folder / "vocabulary", folder / "none",
                Workers(0, 1, torch.device("cpu")),
            )  # fmt: skip
            losses = (summed_loss if fast else SummedLoss)(training.model, train.label_smoothing)
            batches = training.batching.epoch(
                training.train.source.lengths, training.train.target.lengths, 1, 0
            )
            name = f"{'fast' if fast else 'plain'} {precision}"
            variants.append(Variant(name, training, losses, cycle(batches)))
    return flop_per_token(variants[0]), variants


def write_random(folder: Path, sizes: tuple[int, int], sentences: int) -> None:
    """Write an encoded corpus of one batch and vocabularies of these sizes."""
    random = np.random.default_rng(1)
    sides = []
    for size in sizes:
        ids = random.integers(3, size, (sentences, SENTENCE))
        ids[:, -1] = EOS
        sides.append(EncodedSentences(ids.reshape(-1), np.full(sentences, SENTENCE)))
    for split in ("train", "valid"):
        write_encoded(folder / "encoded" / split, [sides], sizes)
    (folder / "vocabulary").mkdir()
    for side, size in zip(("source", "target"), sizes, strict=True):
        words = [(f"w{i}", size - i) for i in range(size - 3)]
        write_vocabulary(folder / "vocabulary" / f"{side}.tsv", words)


def flop_per_token(variant: Variant) -> float:
    """Return the FLOP of an update's products, forward and backward, per target token."""
    with FlopCounterMode(display=False) as counter:
        tokens = variant.update()
    return float(counter.get_total_flops() / tokens)


def measure(variants: list[Variant], rounds: int, updates: int) -> None:
    """Let the variants make updates in turns, after one to warm up."""
    for variant in variants:
        variant.update()
    for _ in range(rounds):
        for variant in variants:
            start = time.perf_counter(), time.process_time()
            tokens = sum(variant.update() for _ in range(updates))
            end = time.perf_counter(), time.process_time()
            variant.rounds.append((tokens / (end[0] - start[0]), tokens / (end[1] - start[1])))


def row(preset: str, flop: float, peaks: dict[str, float], variant: Variant) -> dict[str, Any]:
    """Return what is to be shown of a variant; speeds of the processor are those of all threads together."""
    threads = torch.get_num_threads()
    by_clock, by_processor = (statistics.median(speeds) for speeds in zip(*variant.rounds, strict=True))
    return {
        "preset": preset,
        "variant": variant.name,
        "tokens_per_second": by_clock,
        "tokens_per_processor_second": by_processor * threads,
        "share_of_products": by_processor * threads * flop / peaks[variant.name.split()[1]],
        "flop_per_token": flop,
        "rounds": variant.rounds,
    }


def show(results: list[dict[str, Any]]) -> None:
    """Print the table."""
    print(f"{'preset':20} {'variant':16} {'tokens/s':>9} {'by processor time':>18} {'of products':>12}")
    for one in results:
        print(
            f"{one['preset']:20} {one['variant']:16} {one['tokens_per_second']:9.0f} "
            f"{one['tokens_per_processor_second']:18.0f} {one['share_of_products']:11.0%}"
        )


if __name__ == "__main__":
    main()
