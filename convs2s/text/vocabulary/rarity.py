"""Notice text that is unlike the training text, such as text in another language, before it is translated."""

import math
from collections.abc import Mapping

from convs2s.text.vocabulary.codec import Codec

RATIO = 1.35
"""By the counts of a Tatoeba model, 7 % of Tatoeba's test sentences are above it, and 98 % of 700 leads of
Reuters news; by those of a Multi30k model, 7 % of Multi30k's, and all of the news."""


class Rarity:
    """Tells whether text consists mostly of rare pieces.

    Words that the training text lacks are spelled in short pieces, so that many rare pieces make up few
    characters. Counted are therefore nats per character, by the pieces' frequencies in the training text.

    Args:
        codec: of the source side.
        counts: of its entries in the training text, as in source.tsv.
    """

    def __init__(self, codec: Codec, counts: Mapping[str, int]) -> None:
        self.codec = codec
        counts = {
            entry: max(1, count) for entry, count in counts.items()
        }  # dictionaries of fairseq may have 0
        total, characters = sum(counts.values()), sum(len(entry) * count for entry, count in counts.items())
        self.unseen = math.log(2 * total)  # as if an unknown piece had occurred half a time
        self.nats = {entry: math.log(total / count) for entry, count in counts.items()}
        self.usual = sum(counts[entry] * nats for entry, nats in self.nats.items()) / characters

    def is_rare(self, words: list[str]) -> bool:
        """Return whether most pieces are unknown, or nats per character RATIO times as many as usual."""
        pieces = self.codec.pieces(words)
        unknown = sum(piece not in self.codec.vocabulary for piece in pieces)
        nats = sum(self.nats.get(piece, self.unseen) for piece in pieces)
        return 2 * unknown > len(pieces) or nats > RATIO * self.usual * sum(map(len, pieces))
