"""Speed of a training update on the CPU: the fast paths beside the plain ones, in both precisions.

`python -m benchmarks.train_step` builds the models of two presets with random weights and sentences of one
length, and lets all variants make updates in turns. It prints target tokens per second of the clock and of
processor time, medians over rounds, and the share of the speed of a plain product of matrices. With --json it
writes all rounds.
"""

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.machine import (
    Speed,
    counted_flop,
    in_turns,
    machine,
    print_table,
    product_peaks,
    speeds_as_json,
    write_report,
)
from convs2s.text.corpus.batching import Batch
from convs2s.text.corpus.encoded import EncodedSentences, write_encoded
from convs2s.text.vocabulary.vocabulary import EOS, write_vocabulary
from convs2s.train.distributed import Workers
from convs2s.train.fast.switch import summed_loss
from convs2s.train.loop import Training, _update
from convs2s.train.loss import SummedLoss
from convs2s.train.memory import keep_freed_memory
from convs2s.train.setup import build_training
from pipelines.preset.render import preset_params

SENTENCE = 26  # tokens, EOS included


CPU = torch.device("cpu")


@dataclass
class Variant:
    """A training of a model."""

    training: Training
    losses: SummedLoss
    batches: Iterator[Batch]

    def update(self) -> int:
        """Make an update; return its target tokens."""
        self.training.model.train()
        batch = next(self.batches)
        _update(self.training, self.losses, batch, 0.1)
        self.training.state.updates += 1
        return batch.target_tokens

    def updates(self, count: int) -> float:
        """Make so many updates; return their target tokens."""
        return sum(self.update() for _ in range(count))


def main() -> None:
    """Measure, print and write."""
    options = parse()
    keep_freed_memory()
    torch.set_num_threads(options.threads)
    about = {"machine": machine(), "product_flop_per_second": product_peaks(CPU)}
    print(", ".join(f"{key} {value}" for key, value in about["machine"].items()))
    results = []
    for preset in options.presets:
        with tempfile.TemporaryDirectory() as folder:
            variants = build(preset, options.entries, Path(folder))
            flop = flop_per_token(next(iter(variants.values())))
            ways = {name: partial(one.updates, options.updates) for name, one in variants.items()}
            measured = in_turns(ways, options.rounds, CPU)
        peaks = about["product_flop_per_second"]
        results += [row(preset, name, flop, peaks, speeds) for name, speeds in measured.items()]
    columns = ("preset", "variant", "tokens/s", "by processor time", "of products, %")
    print_table(columns, map(cells, results))
    if options.json:
        write_report(options.json, about, results)


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


def build(preset: str, entries: int | None, folder: Path) -> dict[str, Variant]:
    """Return the trainings to compare."""
    params = preset_params(preset)
    sizes = entries or params.vocabulary.source_size, entries or params.vocabulary.target_size
    write_random(folder, sizes, max(1, 1000 // SENTENCE))
    variants = {}
    for precision in ("float32", "bfloat16"):
        for fast in (False, True):
            train = params.train.model_copy(
                update={"precision": precision, "batch_by": "tokens", "max_tokens": 1000, "selection": None}
            )
            training = build_training(
                params.model, train, 1, folder / "encoded", folder / "vocabulary", folder / "none",
                Workers(0, 1, CPU),
            )  # fmt: skip
            losses = (summed_loss if fast else SummedLoss)(training.model, train.label_smoothing)
            batches = training.batching.epoch(
                training.train.source.lengths, training.train.target.lengths, 1, 0
            )
            name = f"{'fast' if fast else 'plain'} {precision}"
            variants[name] = Variant(training, losses, cycle(batches))
    return variants


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
    tokens = 0

    def update() -> None:
        nonlocal tokens
        tokens = variant.update()

    return counted_flop(update) / tokens


def row(
    preset: str, variant: str, flop: float, peaks: dict[str, float], speeds: Sequence[Speed]
) -> dict[str, Any]:
    """Return what was measured of a variant."""
    values = speeds_as_json(speeds)
    share = values["per_processor_second"]["median"] * flop / peaks[variant.split()[1]]
    return {
        "preset": preset,
        "variant": variant,
        "target_tokens": values,
        "share_of_products": share,
        "flop_per_token": flop,
    }


def cells(result: dict[str, Any]) -> list[object]:
    """Return a row of the table."""
    tokens = result["target_tokens"]
    speeds = [tokens[key]["median"] for key in ("per_second", "per_processor_second")]
    return [result["preset"], result["variant"], *speeds, 100 * result["share_of_products"]]


if __name__ == "__main__":
    main()
