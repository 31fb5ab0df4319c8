"""What each decoder layer attends to while a sentence is translated (Fig. 3)."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float32

from convs2s.decode.batches import pad
from convs2s.decode.word_translator import WordTranslator, block_diagonal
from convs2s.ids.vocabulary import EOS
from convs2s.model.seq2seq import Seq2Seq
from convs2s.package.translator import list_texts, load


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

    A sentence longer than the position table is translated in parts, as in `WordTranslator.translate`; each
    part attends only to itself.

    Raises:
        ValueError: if there are no words, or the model's scores are not numbers.
    """
    model = getattr(translator.model, "seq2seq", None)  # an ensemble has none
    assert isinstance(model, Seq2Seq)
    sentence = list(words)
    rows = translator.rows(sentence)
    if not rows:
        raise ValueError("expected a sentence, found a text without words.")
    best = [ranked[0].tokens for ranked in translator.search(rows, keep_attention=False)]
    device = translator.device
    blocks = [attend_again(model, device, row.ids, ids) for row, ids in zip(rows, best, strict=True)]
    tokens = [token for ids in best for token in ids[:-1]]
    source, target = translator.source, translator.target.vocabulary
    return LayerAttention(
        np.stack([block_diagonal(of_parts) for of_parts in zip(*blocks, strict=True)]),
        [i for i, block in enumerate(model.decoder.layers(), start=1) if block.attention is not None],
        [*source.pieces(sentence), source.vocabulary.entry(EOS)],
        [target.entry(token) for token in [*tokens, EOS]],
    )


@torch.inference_mode()
def attend_again(
    model: Seq2Seq, device: torch.device, source: list[int], target: list[int]
) -> list[Float32[np.ndarray, "T S"]]:
    """Return each layer's attention; the translation is known, so all positions are computed at once."""
    memory = model.encode(pad([source]).to(device))
    _, attention = model.features(pad([[EOS, *target[:-1]]]).to(device), memory)
    return [weights[0].cpu().numpy() for weights in attention]


def read_attention_of(folder: Path, text: str) -> LayerAttention:
    """Translate one text with a model folder, on the CPU; return each layer's attention.

    Errors are those of `read_layers` and `load`.
    """
    translator = load(folder, "cpu")
    # An undecodable byte on the command line becomes a lone surrogate, which is not a character.
    [clean] = list_texts(text)
    return read_layers(translator.words, translator.source.tokenize(clean))
