"""What each decoder layer attends to while a sentence is translated (Fig. 3)."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float32

from convs2s.decode.batches import pad_ids
from convs2s.decode.word_translator import WordTranslator
from convs2s.ids.vocabulary import EOS
from convs2s.model.seq2seq import Seq2Seq
from convs2s.package.translator import load


@dataclass(frozen=True)
class LayerAttention:
    """The attention of each layer while one sentence was translated.

    Attributes:
        layers: weights, which sum to 1 over the source.
        numbers: the decoder layer of each, from 1 at the bottom; the other layers do not attend (Table 5).
        source: tokens, EOS last.
        target: tokens of the best translation, EOS last.
    """

    layers: Float32[np.ndarray, "L T S"]
    numbers: list[int]
    source: list[str]
    target: list[str]

    @property
    def average(self) -> Float32[np.ndarray, "T S"]:
        """The mean of the attending layers, which unknown-word replacement uses (§4.3, T7)."""
        mean: Float32[np.ndarray, "T S"] = self.layers.mean(axis=0)
        return mean


def read_layers(translator: WordTranslator, words: Sequence[str]) -> LayerAttention:
    """Translate a sentence with a single model; return the attention of its best translation, layer by layer.

    Raises:
        ValueError: if there are no words, or more than the position table takes.
    """
    model = getattr(translator.model, "seq2seq", None)  # an ensemble has none
    assert isinstance(model, Seq2Seq)
    sentence = list(words)
    rows = translator.rows(sentence)
    if len(rows) != 1:
        fault = "without words" if not rows else "too long for the model's position table"
        raise ValueError(f"expected a sentence, found a text {fault}.")
    [[best, *_]] = translator.search(rows, keep_attention=False)
    with torch.inference_mode():  # the translation is known, so all positions are computed at once
        memory = model.encode(pad_ids([rows[0].ids]).to(translator.device))
        targets = pad_ids([[EOS, *best.tokens[:-1]]]).to(translator.device)
        _, attention, _ = model.features(targets, memory)
    source = translator.source
    return LayerAttention(
        layers=np.stack([weights[0].cpu().numpy() for weights in attention]),
        numbers=[i for i, block in enumerate(model.decoder.layers(), start=1) if block.attention is not None],
        source=[*source.pieces(sentence), source.vocabulary.entry(EOS)],
        target=[translator.target.vocabulary.entry(token) for token in best.tokens],
    )


def read_attention_of(folder: Path, text: str) -> LayerAttention:
    """Translate one text with a model folder, on the CPU; return each layer's attention.

    Errors are those of `read_layers` and `load`.
    """
    translator = load(folder, "cpu")
    [source] = translator.read(text)
    return read_layers(translator.words, source.seen)
