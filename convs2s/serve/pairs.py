"""The models that a server offers, by language pair."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fastapi import HTTPException

from convs2s.ids.vocabulary import read_counts
from convs2s.package.folder import locate, read_settings
from convs2s.package.layer_attention import LayerAttention, LayerReader
from convs2s.package.translator import Translation, Translator, load
from convs2s.text.vocabulary.codec import Codec

RATIO = 1.35
"""By the counts of a Tatoeba model, 7 % of Tatoeba's test sentences are above it, and 98 % of 700 leads of
Reuters news; by those of a Multi30k model, 7 % of Multi30k's, and all of the news."""


class Rarity:
    """Tells whether text is unlike the training text, as in another language: mostly of rare pieces.

    Words that the training text lacks are spelled in short pieces, so that many rare pieces make up few
    characters. Counted are therefore nats per character, by the pieces' frequencies in the training text.

    Args:
        codec: of the source side.
        counts: of its entries in the training text, as in source.tsv.
    """

    def __init__(self, codec: Codec, counts: Mapping[str, int]) -> None:
        self.codec = codec
        counts = {entry: max(1, n) for entry, n in counts.items()}  # fairseq's dictionaries may have 0
        total, characters = sum(counts.values()), sum(len(entry) * count for entry, count in counts.items())
        self.unseen = math.log(2 * total)  # as if an unknown piece had occurred half a time
        self.nats = {entry: math.log(total / count) for entry, count in counts.items()}
        self.mean = sum(counts[entry] * nats for entry, nats in self.nats.items()) / characters

    def is_rare(self, words: list[str]) -> bool:
        """Return whether most pieces are unknown, or nats per character RATIO times their mean."""
        pieces = self.codec.pieces(words)
        unknown = sum(piece not in self.codec.vocabulary for piece in pieces)
        nats = sum(self.nats.get(piece, self.unseen) for piece in pieces)
        return 2 * unknown > len(pieces) or nats > RATIO * self.mean * sum(map(len, pieces))


@dataclass(frozen=True, eq=False)
class Pair:
    """A language pair with its model, or its ensemble.

    Attributes:
        source: language code.
        target: language code.
        translator: returns all hypotheses of the beam.
        members: number of models.
        rarity: tells text that is unlike the training text.
    """

    source: str
    target: str
    translator: Translator
    members: int
    rarity: Rarity

    def __str__(self) -> str:
        return f"{self.source}-{self.target}"

    def translate(self, lines: list[str]) -> list[list[Translation]]:
        """Return each line's hypotheses, best first."""
        return self.translator.translate_n_best(lines)

    def attend(self, lines: list[str]) -> list[LayerAttention]:
        """Return each decoder layer's attention while each line is translated; for single models only."""
        reader = LayerReader.of(self.translator)
        return [reader.read(self.translator.source.tokenize(line)) for line in lines]


def find_pair(pairs: Sequence[Pair], source: str, target: str) -> Pair:
    """Return a pair; source `auto` is the only language that can be translated to the target."""
    fitting = [pair for pair in pairs if pair.target == target and source in (pair.source, "auto")]
    if len(fitting) != 1:
        raise HTTPException(
            400,
            f"{source}-{target} is not available; this server translates {', '.join(map(str, pairs))}. "
            "Source auto is possible only if one language has this target, as languages are not detected.",
        )
    return fitting[0]


def load_pairs(
    folders: Sequence[Path], device: str | None, beam_size: int | None, replace: bool | None
) -> list[Pair]:
    """Load model folders, an ensemble if several have the same language pair; errors as `load`."""
    by_pair: dict[tuple[str, str], list[Path]] = defaultdict(list)
    for folder in map(locate, folders):
        by_pair[read_settings(folder).languages].append(folder)
    pairs = []
    for (source, target), paths in by_pair.items():
        size = beam_size or read_settings(paths[0]).translate.beam_size
        translator = load(paths, device, replace=replace, beam_size=size, n_best=size)
        rarity = Rarity(translator.words.source, read_counts(paths[0] / "source.tsv", "vocabulary"))
        pairs.append(Pair(source, target, translator, len(paths), rarity))
    return pairs
