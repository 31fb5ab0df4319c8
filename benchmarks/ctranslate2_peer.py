"""CTranslate2's Transformer-base with random weights, in 8-bit integers; needs CTranslate2."""

import importlib
import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

LAYERS, SIZE, HIDDEN, HEADS = 6, 512, 2048, 8
SPECIAL = ["<unk>", "<s>", "</s>"]


def has_ctranslate2() -> bool:
    """Return whether CTranslate2 is installed."""
    return importlib.util.find_spec("ctranslate2") is not None


class Peer:
    """A model with random weights, which translates to a given length.

    Args:
        folder: for the model's files.
        entries: of both vocabularies, not counting special ones.
        threads: of its single worker.
    """

    def __init__(self, folder: Path, entries: int, threads: int) -> None:
        self.words = [f"w{i}" for i in range(entries)]
        write_model(folder, [*SPECIAL, *self.words])
        self.translator: Any = importlib.import_module("ctranslate2").Translator(
            str(folder), device="cpu", compute_type="int8", inter_threads=1, intra_threads=threads
        )

    def translate(self, sentences: Sequence[Sequence[str]], beam_size: int, length: int) -> float:
        """Translate to so many tokens each; return the number of tokens of all best hypotheses."""
        found = self.translator.translate_batch(
            sentences, beam_size=beam_size, min_decoding_length=length, max_decoding_length=length
        )
        return float(sum(len(one.hypotheses[0]) for one in found))


def write_model(folder: Path, vocabulary: list[str]) -> None:
    """Write a model folder like those of CTranslate2's converters."""
    random = np.random.default_rng(1)

    def linear(layer: Any, outputs: int, inputs: int) -> None:
        layer.weight = random.normal(0, inputs**-0.5, (outputs, inputs)).astype(np.float32)
        layer.bias = np.zeros(outputs, np.float32)

    def norm(layer: Any) -> None:
        layer.gamma, layer.beta = np.ones(SIZE, np.float32), np.zeros(SIZE, np.float32)

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
