"""BPE dropout: each epoch splits the words of the training text in another way (Provilkov et al., 2020).

Not by sentencepiece: the random numbers of its samples differ from process to process, whatever the seed.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random

from convs2s.text.corpus.files import SIDES
from convs2s.text.corpus.parallel import map_chunks
from convs2s.text.vocabulary.codec import Codec
from convs2s.text.vocabulary.encoded import EncodedCorpus, EncodedSentences, flatten, write_encoded

CHUNK_PAIRS = 5000  # pairs that share a random seed


@dataclass(frozen=True)
class BpeDropout:
    """Splits a corpus anew for each pass through it; the ids depend only on the seed and the pass.

    Attributes:
        encoded: folder of the corpus, from whose ids the words are read.
        vocabulary: folder of both sides' codecs.
        probability: that a merge is left out.
        seed: of the training.
    """

    encoded: Path
    vocabulary: Path
    probability: float
    seed: int

    def write(self, number: int, folder: Path) -> None:
        """Write the ids of a pass to a folder, which appears only once it is complete; on all cores."""
        firsts = range(0, len(EncodedCorpus.open(self.encoded, SIDES[0])), CHUNK_PAIRS)
        source, target = (len(Codec.load(self.vocabulary, side).vocabulary) for side in SIDES)
        chunks = map_chunks(partial(Splitter, self, number), self._chunks(firsts), 1, "")
        write_encoded(folder, chunks, (source, target))

    def _chunks(self, firsts: range) -> Iterator[tuple[int, int]]:
        return ((first, firsts.step) for first in firsts)


class Splitter:
    """Splits chunks of pairs, each given by its first and their number."""

    def __init__(self, dropout: BpeDropout, number: int) -> None:
        self._dropout, self._pass = dropout, number
        corpora = [EncodedCorpus.open(dropout.encoded, side) for side in SIDES]
        self._sides = [
            (corpus, Codec.load(dropout.vocabulary, side), corpus.lengths.max())
            for side, corpus in zip(SIDES, corpora, strict=True)
        ]

    def __call__(self, chunks: list[tuple[int, int]]) -> list[EncodedSentences]:
        ((first, count),) = chunks
        encoded = []
        for number, (corpus, codec, longest) in enumerate(self._sides):
            # Six times as fast as numpy's generators, for single numbers
            random = Random(f"{self._dropout.seed} {self._pass} {first} {number}").random
            sentences = []
            for i in range(first, min(first + count, len(corpus))):
                ids = codec.split(codec.decode(corpus[i]), self._dropout.probability, random)
                # Position tables need only hold the corpus as it is.
                sentences.append(ids if len(ids) <= longest else corpus[i].tolist())
            encoded.append(flatten(sentences, len(codec.vocabulary)))
        return encoded
