"""Text to ids: sentence pairs are split into pieces and encoded, in parallel."""

from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

from convs2s.base.files import SIDES
from convs2s.base.parallel import map_chunks
from convs2s.ids.encoded import EncodedSentences, flatten
from convs2s.text.vocabulary.codec import Codec

CHUNK_PAIRS = 20_000


class PairEncoder:
    """Encodes chunks of pairs, one side at a time."""

    def __init__(self, folder: Path) -> None:
        self._codecs = [Codec.load(folder, side) for side in SIDES]

    def __call__(self, pairs: list[tuple[str, str]]) -> list[EncodedSentences]:
        return [
            flatten([codec.encode(line.split()) for line in lines], len(codec.vocabulary))
            for codec, lines in zip(self._codecs, zip(*pairs, strict=True), strict=True)
        ]


def encode_pairs(pairs: Iterable[tuple[str, str]], folder: Path) -> Iterator[list[EncodedSentences]]:
    """Yield chunks of encoded source and target sentences; on all cores, in order, a few at a time.

    Args:
        pairs: whitespace-separated words.
    """
    return map_chunks(partial(PairEncoder, folder), pairs, CHUNK_PAIRS, "encode")
