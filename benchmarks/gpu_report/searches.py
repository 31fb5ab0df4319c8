"""Beam search with hypotheses on the device, and on the host: speeds, and equality.

Models have random weights, and sentences have lengths like those of WMT. Hypotheses of random models do not
end by themselves, so they end at the length of the source. --model and --source measure a real model, too.
Speeds are sentences per second from ids to ids, in sorted batches: in the first pass, in which shapes are
new, and in the second. The last column counts sentences whose best hypotheses are the same as the host's; in
bfloat16 equal scores may be ordered otherwise. The last rows have the sizes of Table 3 (§5.3), where a
GTX-1080ti translates 42 and 23 sentences per second, with beams of 1 and 5.
"""

import argparse
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.gpu_report.shared import part
from benchmarks.gpu_report.training import model_params
from benchmarks.harness import Report, add_common
from benchmarks.synthetic import random_ids, random_model
from convs2s.config.translate import SearchPlace, TranslateParams
from convs2s.ids.batching import pad
from convs2s.ids.vocabulary import PAD
from convs2s.model.seq2seq import Seq2Seq
from convs2s.model.storage import load_model
from convs2s.package.translator import load
from convs2s.search.beam_search import BeamSearch
from convs2s.search.stepwise_model import StepwiseModel
from pipelines.preset import preset_params

Ids = list[list[int]]
TABLE_3 = 6003
"""Sentences of newstest2012 and newstest2013."""
SHARPNESS = 4.0
"""By which random output weights are multiplied; otherwise all tokens are nearly as likely as all others."""


def decided_model(preset: str, device: torch.device, toy: bool) -> Seq2Seq:
    """Return a preset's model with random weights that prefers some tokens to others."""
    model = random_model(*model_params(preset, toy))
    model.output_layer.weight.mul_(SHARPNESS)
    return model.to(device)


def random_sentences(count: int, entries: int) -> Ids:
    """Return source sentences with lengths like those of WMT, EOS included."""
    random = np.random.default_rng(1)
    lengths = np.clip(random.lognormal(np.log(24), 0.62, count).round(), 2, 250).astype(np.int64)
    return [ids.tolist() for ids in random_ids(random, entries, lengths)]


def encode_lines(folder: Path, lines: Sequence[str]) -> Ids:
    """Return the lines of a text as ids of a model folder."""
    translator = load(folder, "cpu", precision="float32")
    return [
        translator.words.source.encode(words) for line in lines if (words := translator.source.tokenize(line))
    ]


def run(search: Any, model: StepwiseModel, batches: Sequence[Any]) -> tuple[float, list[list[int]]]:
    """Search all batches; return the seconds, and the best hypothesis of each sentence."""
    start = time.perf_counter()
    found = [ranked for source, limits in batches for ranked in search.search(model, source, limits)]
    return time.perf_counter() - start, [ranked[0].tokens for ranked in found]


def measure_searches(
    name: str,
    seq2seq: Seq2Seq,
    sentences: Ids,
    params: TranslateParams,
    precision: str,
    size: int,
    report: Report,
    ways: Sequence[SearchPlace] = ("host", "device"),
) -> None:
    """Measure searches in batches of one size."""
    model = StepwiseModel(seq2seq.to(getattr(torch, precision)))
    device = model.output_biases.device
    ordered = sorted(sentences, key=len)
    groups = [ordered[start : start + size] for start in range(0, len(ordered), size)]
    batches = []
    for group in groups:
        limits = [int(params.max_length_ratio * (len(ids) - 1) + params.max_length_extra) for ids in group]
        source = torch.from_numpy(pad([np.array(ids) for ids in group], PAD))
        batches.append((source.to(device), limits))
    expected: list[list[int]] = []
    for way in ways:
        search = BeamSearch(params, keep_attention=False, place=way)
        first, found = run(search, model, batches)
        again, _ = run(search, model, batches)
        expected = expected or found
        same = sum(one == other for one, other in zip(found, expected, strict=True))
        report.add(
            model=name, precision=precision, beam=params.beam_size, batch=size, search=way,
            first=len(ordered) / first, again=len(ordered) / again, same=f"{same} of {len(ordered)}",
        )  # fmt: skip


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of a real model."""
    add_common(parser, model=None, source=None)


def measure(options: argparse.Namespace, device: torch.device, report: Report) -> None:
    """Measure each model in both precisions."""
    toy = options.toy
    presets = {"tatoeba-en-de": 40} if toy else {"multi30k-en-de": 2048, "wmt14-en-de-paper": 1024}
    params = preset_params("tatoeba-en-de").translate.model_copy(update={"n_best": 1, "beam_size": 5})
    to_source = params.model_copy(update={"max_length_ratio": 1.0, "max_length_extra": 0})
    models: dict[str, tuple[Seq2Seq, Ids, TranslateParams]] = {}
    if options.model is not None:
        real = load_model(options.model, device)
        sentences = encode_lines(options.model, report.draw(options.source, 40 if toy else 4096))
        models["the given model"] = real, sentences, params
    for preset, count in presets.items():
        model = decided_model(preset, device, toy)
        sentences = random_sentences(count, len(model.output_layer.weight))
        models[preset] = model, sentences, to_source
    columns = ("model", "precision", "beam", "batch", "search", "sentences/s, first", "again", "same")
    report.table(columns, "Beam search, on sorted batches")
    for name, given in models.items():
        for precision in ("float32", "bfloat16"):
            for size in (20,) if toy else (1024, 128):
                report.attempt(partial(measure_searches, name, *given, precision, size, report))
    preset, count = ("tatoeba-en-de", 40) if toy else ("wmt14-en-fr-paper", TABLE_3)
    model = decided_model(preset, device, toy)
    sentences = random_sentences(count, len(model.output_layer.weight))
    for beam in (1, 5):
        given = model, sentences, to_source.model_copy(update={"beam_size": beam})
        name = f"Table 3: {count:,} sentences"
        report.attempt(partial(measure_searches, name, *given, "bfloat16", 1024, report, ways=["device"]))


main = part(__doc__, measure, add_options)

if __name__ == "__main__":
    main()
