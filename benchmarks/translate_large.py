"""Speed of translation on the CPU with the model of §5.1, and with CTranslate2's int8 Transformer-base.

    python -m benchmarks.translate_large --beam-sizes 1 5

translates a batch of random sentences with each in turns. Weights are random, and all translations get as
many tokens as the source. It prints target tokens per second of processor time (median over rounds, minimum
and maximum), and the ratio to CTranslate2, if that is installed (pip install ctranslate2). `selected`
considers only some target tokens, drawn at random.
"""

import argparse
import importlib
import tempfile
from collections.abc import Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.harness import Report, Work, add_common, fast_dtypes, program, speeds_in_turns
from benchmarks.synthetic import narrow, random_model
from convs2s.fairseq.importer import SEARCH
from convs2s.ids.vocabulary import EOS
from convs2s.model.precision import Precision
from convs2s.search.beam_search import BeamSearch
from convs2s.search.choose_model import choose_model
from convs2s.search.search import SearchModel
from pipelines.preset import preset_params

CPU = torch.device("cpu")
PEER = "CTranslate2 int8"
COLUMNS = ("beam, system", "tokens/s", "lowest", "highest", "ratio")
LAYERS, SIZE, HIDDEN, HEADS = 6, 512, 2048, 8  # of Transformer-base


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the sizes of the model and of the batch."""
    add = parser.add_argument
    add("--preset", default="wmt14-en-de-paper", help="whose architecture to use")
    add("--channels", type=int, help="of all layers; by default the preset's")
    add("--entries", type=int, default=40_000, help="of both vocabularies")
    add("--selected", type=int, default=4000, help="target tokens of the last system")
    add("--sentences", type=int, default=128, help="of the batch")
    add("--tokens", type=int, default=26, help="per sentence, not counting EOS")
    add("--precisions", nargs="+", default=[*fast_dtypes(CPU), "int8"])
    add_common(parser, "beam_sizes", "rounds", "threads")


def measure(options: argparse.Namespace, report: Report) -> None:
    """Measure all systems, by beam size."""
    report.note(options=vars(options) | {"json": None})
    report.table(COLUMNS)
    with tempfile.TemporaryDirectory() as folder:
        systems = ours(options)
        if find_spec("ctranslate2") is not None:
            peer = Peer(Path(folder, "model"), options.entries, options.threads)
            shape = options.sentences, options.tokens
            words = np.random.default_rng(1).choice(peer.words, shape).tolist()
            systems[PEER] = partial(peer.translate, words, length=options.tokens)
        for beam_size in options.beam_sizes:
            works: dict[str, Work] = {name: partial(work, beam_size) for name, work in systems.items()}
            tokens = speeds_in_turns(works, options.rounds, CPU)
            for name, both in tokens.items():
                speed = both["per_processor_second"]
                ratio: float | str = ""
                if PEER in tokens:
                    ratio = speed["median"] / tokens[PEER]["per_processor_second"]["median"]
                report.add(
                    f"{beam_size}, {name}", *speed.values(), ratio,
                    beam_size=beam_size, system=name, tokens=both,
                )  # fmt: skip


def endless_model(options: argparse.Namespace, precision: Precision) -> SearchModel:
    """Return a random model that never writes EOS unless forced to."""
    params = narrow(preset_params(options.preset).model, options.channels)
    model = random_model(params, options.entries)
    model.output_layer.bias.data[EOS] = -1e4
    return choose_model(model, precision, CPU)


def ours(options: argparse.Namespace) -> dict[str, Any]:
    """Return functions that translate the batch with a given beam, by the name of the system."""
    random = np.random.default_rng(1)
    ids = random.integers(3, options.entries, (options.sentences, options.tokens + 1))
    ids[:, -1] = EOS
    source = torch.from_numpy(ids)
    drawn = 3 + random.permutation(options.entries - 3)[: options.selected - 3]
    selected = torch.from_numpy(np.sort(np.concatenate([np.arange(3), drawn])))
    models = {precision: endless_model(options, precision) for precision in options.precisions}
    systems: dict[str, Any] = {
        f"ours {precision}": partial(search, model, source) for precision, model in models.items()
    }
    last = options.precisions[-1]
    name = f"ours {last}, {options.selected:,} selected"
    systems[name] = partial(search, models[last].restrict(selected), source)
    return systems


def search(model: SearchModel, source: torch.Tensor, beam_size: int) -> float:
    """Translate a batch; return the tokens of the best hypotheses, including EOS, as in the source."""
    beam = BeamSearch(SEARCH.model_copy(update={"beam_size": beam_size}), keep_attention=False)
    limits = [source.shape[1] - 1] * len(source)
    return float(sum(len(best.tokens) for best, *_ in beam.search(model, source, limits)))


class Peer:
    """CTranslate2's Transformer-base with random weights, in 8-bit integers; translates to a given length.

    Args:
        folder: for the model's files.
        entries: of both vocabularies, not counting special ones.
        threads: of its single worker.
    """

    def __init__(self, folder: Path, entries: int, threads: int) -> None:
        self.words = [f"w{i}" for i in range(entries)]
        write_model(folder, ["<unk>", "<s>", "</s>", *self.words])
        self.translator: Any = importlib.import_module("ctranslate2").Translator(
            str(folder), device="cpu", compute_type="int8", inter_threads=1, intra_threads=threads
        )

    def translate(self, sentences: Sequence[Sequence[str]], beam_size: int, length: int) -> float:
        """Translate to so many tokens each; return the number of tokens of all best hypotheses."""
        results = self.translator.translate_batch(
            sentences, beam_size=beam_size, min_decoding_length=length, max_decoding_length=length
        )
        return float(sum(len(result.hypotheses[0]) for result in results))


def write_model(folder: Path, vocabulary: list[str]) -> None:
    """Write a model folder like those of CTranslate2's converters."""
    random = np.random.default_rng(1)

    def linear(layer: Any, outputs: int, inputs: int) -> None:
        layer.weight = random.normal(0, inputs**-0.5, (outputs, inputs)).astype(np.float32)
        layer.bias = np.zeros(outputs, np.float32)

    def norm(layer: Any) -> None:
        layer.gamma = np.ones(SIZE, np.float32)
        layer.beta = np.zeros(SIZE, np.float32)

    def attention(layer: Any, *parts: int) -> None:
        """Fill merged linear maps: `parts` times the size of the model."""
        norm(layer.layer_norm)
        for product, count in zip(layer.linear, parts, strict=True):
            linear(product, count * SIZE, SIZE)

    def feed_forward(layer: Any) -> None:
        norm(layer.layer_norm)
        linear(layer.linear_0, HIDDEN, SIZE)
        linear(layer.linear_1, SIZE, HIDDEN)

    spec = importlib.import_module("ctranslate2.specs").TransformerSpec.from_config((LAYERS, LAYERS), HEADS)
    for embeddings in (*spec.encoder.embeddings, spec.decoder.embeddings):
        embeddings.weight = random.normal(0, SIZE**-0.5, (len(vocabulary), SIZE)).astype(np.float32)
    for side in (spec.encoder, spec.decoder):
        norm(side.layer_norm)
        for layer in side.layer:
            attention(layer.self_attention, 3, 1)
            feed_forward(layer.ffn)
    for layer in spec.decoder.layer:
        attention(layer.attention, 1, 2, 1)
    linear(spec.decoder.projection, len(vocabulary), SIZE)
    spec.register_source_vocabulary(vocabulary)
    spec.register_target_vocabulary(vocabulary)
    spec.validate()
    spec.optimize(quantization="int8")
    folder.mkdir()
    spec.save(str(folder))


main = program(__doc__, add_options, measure, packages=["numba", "ctranslate2"])

if __name__ == "__main__":
    main()
