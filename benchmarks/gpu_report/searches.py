"""Beam search with hypotheses on the device, and on the host: speeds, and equality.

Models have random weights, and sentences have lengths like those of WMT. Hypotheses of random models do not
end by themselves, so they end at the length of the source. --model and --source measure a real model, too.
Speeds are sentences per second from ids to ids, in sorted batches: in the first pass, in which shapes are
new, and in the second. The last column counts sentences whose best hypotheses are
the same as the host's; in bfloat16 equal scores may be ordered otherwise.
"""

import argparse
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.gpu_report.mixed_lengths import draw_lengths
from benchmarks.gpu_report.results import Results, begin
from benchmarks.gpu_report.training import model_params
from convs2s.config.translate import TranslateParams
from convs2s.ids.batching import pad
from convs2s.ids.vocabulary import EOS, PAD
from convs2s.model.initialization import fold_weight_norm
from convs2s.model.seq2seq import Seq2Seq
from convs2s.model.storage import load_model
from convs2s.package.translator import load
from convs2s.search.beam_search import BeamSearch
from convs2s.search.stepwise_model import StepwiseModel
from pipelines.preset import preset_params

Ids = list[list[int]]
SHARPNESS = 4.0
"""By which random output weights are multiplied; otherwise all tokens are nearly as likely as all others."""


def random_model(preset: str, device: torch.device, toy: bool) -> Seq2Seq:
    """Return a preset's model with random weights."""
    torch.manual_seed(1)
    params, entries = model_params(preset, toy)
    model = Seq2Seq(params, entries, entries, PAD, dropout=0.0)
    fold_weight_norm(model)
    with torch.no_grad():
        model.output_layer.weight.mul_(SHARPNESS)
    return model.to(device).eval().requires_grad_(False)


def random_sentences(count: int, entries: int) -> Ids:
    """Return source sentences."""
    lengths, _ = draw_lengths(count)
    random = np.random.default_rng(1)
    return [[*random.integers(3, entries, length - 1).tolist(), EOS] for length in lengths.tolist()]


def read_sentences(folder: Path, source: Path, count: int) -> Ids:
    """Return the sentences of a text as ids of a model folder."""
    translator = load(folder, "cpu", precision="float32")
    lines = source.read_text(encoding="utf-8").splitlines()[:count]
    return [
        translator.words.source.encode(words) for line in lines if (words := translator.source.tokenize(line))
    ]


def run(search: Any, model: StepwiseModel, batches: Sequence[Any]) -> tuple[float, list[list[int]]]:
    """Search all batches; return the seconds, and the best hypothesis of each sentence."""
    start = time.perf_counter()
    found = [ranked for source, limits in batches for ranked in search.search(model, source, limits)]
    return time.perf_counter() - start, [ranked[0].tokens for ranked in found]


def measure(
    name: str,
    seq2seq: Seq2Seq,
    sentences: Ids,
    params: TranslateParams,
    precision: str,
    size: int,
    results: Results,
) -> None:
    """Measure all searches in batches of one size."""
    model = StepwiseModel(seq2seq.to(getattr(torch, precision)))
    device = model.output_biases.device
    ordered = sorted(sentences, key=len)
    parts = [ordered[start : start + size] for start in range(0, len(ordered), size)]
    batches = []
    for part in parts:
        limits = [int(params.max_length_ratio * (len(ids) - 1) + params.max_length_extra) for ids in part]
        source = torch.from_numpy(pad([np.array(ids) for ids in part], PAD))
        batches.append((source.to(device), limits))
    expected: list[list[int]] = []
    for way in ("host", "device"):
        search = BeamSearch(params, keep_attention=False, place=way)
        first, found = run(search, model, batches)
        again, _ = run(search, model, batches)
        expected = expected or found
        same = sum(one == other for one, other in zip(found, expected, strict=True))
        results.add(
            model=name, precision=precision, beam=params.beam_size, batch=size, search=way,
            first=len(ordered) / first, again=len(ordered) / again, same=f"{same} of {len(ordered)}",
        )  # fmt: skip


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of a real model."""
    parser.add_argument("--model", type=Path, help="model folder")
    parser.add_argument("--source", type=Path, help="text that it translates")


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    options, device, results = begin(__doc__, arguments, add_options)
    toy = options.toy
    columns = ("model", "precision", "beam", "batch", "search", "sentences/s, first", "again", "same")
    results.begin("Beam search, on sorted batches", columns)
    presets = {"tatoeba-en-de": 40} if toy else {"multi30k-en-de": 2048, "wmt14-en-de-paper": 1024}
    params = preset_params("tatoeba-en-de").translate.model_copy(update={"n_best": 1, "beam_size": 5})
    to_source = params.model_copy(update={"max_length_ratio": 1.0, "max_length_extra": 0})
    models: dict[str, tuple[Seq2Seq, Ids, TranslateParams]] = {}
    if options.model is not None:
        real = load_model(options.model, device)
        sentences = read_sentences(options.model, options.source, 40 if toy else 4096)
        models["the given model"] = real, sentences, params
    for preset, count in presets.items():
        model = random_model(preset, device, toy)
        sentences = random_sentences(count, len(model.output_layer.weight))
        models[preset] = model, sentences, to_source
    for name, given in models.items():
        for precision in ("float32", "bfloat16"):
            for size in (20,) if toy else (1024, 128):
                results.attempt(partial(measure, name, *given, precision, size, results))
    results.end()


if __name__ == "__main__":
    main()
