"""What each decoder layer attends to while a sentence is translated (Fig. 3)."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float32

from convs2s.decode.batches import pad
from convs2s.decode.translations import block_diagonal
from convs2s.decode.word_translator import WordTranslator
from convs2s.ids.vocabulary import EOS
from convs2s.model.seq2seq import Seq2Seq
from convs2s.package.translator import Translator, list_texts, load


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


class LayerReader(WordTranslator):
    """A translator of words that returns the attention of each layer of its single model."""

    @classmethod
    def of(cls, translator: Translator) -> "LayerReader":
        """Return the reader of a translator's model."""
        words = translator.words
        return cls(words.model, words.source, words.target, words.params, words.device, words.selection)

    def read(self, words: Sequence[str]) -> LayerAttention:
        """Translate a sentence and return the attention of its best translation.

        A sentence longer than the position table is translated in parts, as in `translate`; each part attends
        only to itself.

        Raises:
            ValueError: if there are no words, or the model's scores are not numbers.
        """
        sentence = list(words)
        rows = self.rows(sentence)
        if not rows:
            raise ValueError("expected a sentence, found a text without words.")
        best = [ranked[0].tokens for ranked in self.search(rows, keep_attention=False)]
        blocks = [self._of_part(row.ids, target) for row, target in zip(rows, best, strict=True)]
        tokens = [token for target in best for token in target[:-1]]
        entry = self.target.vocabulary.entry
        return LayerAttention(
            np.stack([block_diagonal(of_parts) for of_parts in zip(*blocks, strict=True)]),
            [number for number, flag in enumerate(self._attending(), start=1) if flag],
            [*self.source.pieces(sentence), self.source.vocabulary.entry(EOS)],
            [entry(token) for token in [*tokens, EOS]],
        )

    @torch.inference_mode()
    def _of_part(self, source_ids: list[int], target_ids: list[int]) -> list[Float32[np.ndarray, "T S"]]:
        """Return each layer's attention; the translation is known, so all positions are computed at once."""
        source = pad([source_ids]).to(self.device)
        target_input = pad([[EOS, *target_ids[:-1]]]).to(self.device)
        _, attention = self._model().features(target_input, self._model().encode(source))
        return [weights[0].cpu().numpy() for weights in attention]

    def _attending(self) -> list[bool]:
        return [block.attention is not None for block in self._model().decoder.layers()]

    def _model(self) -> Seq2Seq:
        model = getattr(self.model, "seq2seq", None)  # an ensemble has none
        assert isinstance(model, Seq2Seq)
        return model


def read_attention_of(folder: Path, text: str) -> LayerAttention:
    """Translate one text with a model folder, on the CPU; return each layer's attention; errors as `read`."""
    translator = load(folder, "cpu")
    # An undecodable byte on the command line becomes a lone surrogate, which is not a character.
    [clean] = list_texts(text)
    return LayerReader.of(translator).read(translator.source.tokenize(clean))
