"""Speed of a training update: the fast layers compared with the plain ones, in both precisions.

It builds the models of some presets, with random weights and sentences of one length, and runs updates of all
variants in turns. It prints target tokens per second of wall and of processor time, medians over rounds, and
the share of the speed of a plain matrix product: by processor time on a CPU, by wall time on a GPU, where it
also prints peak memory. --json also has spreads.
"""

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from benchmarks.fairseq_peer import FairseqVariant, fairseq_variant
from benchmarks.machine import (
    DTYPES,
    fast_dtypes,
    flop_per_unit,
    in_turns,
    machine,
    make_parser,
    print_table,
    product_peak,
    speeds_as_json,
    write_report,
)
from convs2s.config.model import ModelParams
from convs2s.ids.batching import Batch
from convs2s.ids.encoded import EncodedSentences, write_encoded
from convs2s.ids.vocabulary import EOS, write_vocabulary
from convs2s.train.batch_update import finish_update, queue_update
from convs2s.train.distributed import Workers
from convs2s.train.setup import build_training, keep_freed_memory
from convs2s.train.training import Training
from pipelines.preset import preset_params

SENTENCE = 26  # tokens, including EOS
VARIANTS = ("plain", "fast", "compiled", "fairseq")


@dataclass
class Variant:
    """A training of a model."""

    training: Training
    losses: nn.Module
    batches: Iterator[Batch]

    def update(self) -> int:
        """Make an update; return its target tokens."""
        self.training.model.train()
        loaded = self.training.load(next(self.batches))
        queued = queue_update(self.training, self.losses, loaded, 0.1)
        finish_update(self.training, queued, loaded, 0.1)
        self.training.state.updates += 1
        return loaded.batch.target_tokens


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print and write."""
    parser = make_parser(__doc__)
    parser.add_argument("--presets", nargs="+", default=["multi30k-en-de", "wmt14-en-de-paper"])
    parser.add_argument("--entries", type=int, help="vocabulary entries; by default the preset's")
    parser.add_argument("--channels", type=int, help="of all layers; by default the preset's")
    parser.add_argument("--tokens", type=int, nargs="+", default=[1000], help="per update, approximately")
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=VARIANTS[:2])
    parser.add_argument("--precisions", nargs="+", choices=DTYPES, help="by default those that are fast")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--updates", type=int, default=2, help="per round and variant")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    options = parser.parse_args(arguments)
    keep_freed_memory()
    torch.set_num_threads(options.threads)
    device = torch.device(options.device)
    options.precisions = options.precisions or fast_dtypes(device)
    peaks = {name: product_peak(name, device) for name in options.precisions}
    about = {"machine": machine(), "product_flop_per_second": peaks}
    print(", ".join(f"{key} {value}" for key, value in about["machine"].items()))
    results = []
    for preset in options.presets:
        for tokens in options.tokens:
            results += measure(preset, tokens, device, options, peaks)
    columns = ("preset", "tokens", "variant", "tokens/s", "by processor time", "of products, %", "MiB")
    print_table(columns, map(cells, results))
    write_report(options.json, about, results)


def measure(
    preset: str, tokens: int, device: torch.device, options: argparse.Namespace, peaks: dict[str, float]
) -> list[dict[str, Any]]:
    """Return the measurements of each variant of a preset."""
    ours = [path for path in options.variants if path != "fairseq"]
    names = [f"{path} {precision}" for precision in options.precisions for path in ours]
    if "fairseq" in options.variants and find_spec("fairseq") is not None:
        names = ["fairseq float32", *names]
    with tempfile.TemporaryDirectory() as folder:
        variants = {name: build(preset, Path(folder, name), name, tokens, device, options) for name in names}
        # From the plainest variant: library convolutions also compute positions that are then cut off.
        plainest = variants[min(names, key=lambda name: VARIANTS.index(name.split()[0]))]
        flop = flop_per_unit(plainest.update)
        memory = {name: peak_memory(variant, device) for name, variant in variants.items()}
        ways = {name: partial(make_updates, variant, options.updates) for name, variant in variants.items()}
        measured = in_turns(ways, options.rounds, device)
    by = "per_second" if device.type == "cuda" else "per_processor_second"
    results = []
    for name, speeds in measured.items():
        values = speeds_as_json(speeds)
        _, precision = name.split()
        results.append({
            "preset": preset, "tokens": tokens, "variant": name, "target_tokens": values,
            "share_of_products": values[by]["median"] * flop / peaks[precision],
            "flop_per_token": flop, "peak_memory_bytes": memory[name],
        })  # fmt: skip
    return results


def build(
    preset: str, folder: Path, name: str, tokens: int, device: torch.device, options: argparse.Namespace
) -> Variant | FairseqVariant:
    """Return a training on a batch of so many random tokens, by the name of its path and precision."""
    path, precision = name.split()
    params = preset_params(preset)
    sentences = max(1, tokens // SENTENCE)
    sizes = (
        options.entries or params.vocabulary.source_size,
        options.entries or params.vocabulary.target_size,
    )
    write_random(folder, sizes, [np.full(sentences, SENTENCE)] * 2)
    changes = {
        "precision": precision, "batch_by": "sentences", "batch_sentences": sentences, "max_tokens": tokens,
        "selection": None, "compile": path != "fast",  # a training that is to be compiled has plain layers
    }  # fmt: skip
    model = narrow(params.model, options.channels)
    training = build_training(
        model,
        params.train.model_copy(update=changes),
        seed=1,
        encoded=folder / "encoded",
        vocabulary=folder / "vocabulary",
        candidates=folder / "none",
        workers=Workers(0, 1, device),
    )
    batches = cycle(training.batching.share(training.begin_pass(), 0))
    if path == "fairseq":
        return fairseq_variant(training, model, sizes, batches)
    losses = training.losses(0.0)
    if path == "compiled":
        losses.compile(dynamic=True)
    return Variant(training, losses, batches)


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


def narrow(model: ModelParams, channels: int | None) -> ModelParams:
    """Return a model with this many channels in all layers; None leaves them unchanged."""
    if channels is None:
        return model
    changes: dict[str, Any] = dict.fromkeys(("embedding_size", "output_embedding_size"), channels)
    for side in ("encoder_widths", "decoder_widths"):
        changes[side] = [channels] * len(getattr(model, side))
    return model.model_copy(update=changes)


def write_random(folder: Path, sizes: tuple[int, int], lengths: Sequence[NDArray[np.int64]]) -> None:
    """Write an encoded corpus and vocabularies, given the sizes and sentence lengths of source and target."""
    random = np.random.default_rng(1)
    sides = []
    for size, side_lengths in zip(sizes, lengths, strict=True):
        ids = random.integers(3, size, side_lengths.sum())
        ids[np.cumsum(side_lengths) - 1] = EOS
        sides.append(EncodedSentences(ids, side_lengths))
    for split in ("train", "valid"):
        write_encoded(folder / "encoded" / split, [sides], sizes)
    (folder / "vocabulary").mkdir(parents=True)
    for side, size in zip(("source", "target"), sizes, strict=True):
        words = [(f"w{i}", size - i) for i in range(size - 3)]
        write_vocabulary(folder / "vocabulary" / f"{side}.tsv", words)


def cells(result: dict[str, Any]) -> list[object]:
    """Return a row of the table."""
    speeds = result["target_tokens"]
    memory = result["peak_memory_bytes"]
    return [
        result["preset"],
        result["tokens"],
        result["variant"],
        speeds["per_second"]["median"],
        speeds["per_processor_second"]["median"],
        100 * result["share_of_products"],
        "" if memory is None else memory >> 20,
    ]


if __name__ == "__main__":
    main()
