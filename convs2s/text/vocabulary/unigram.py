"""SentencePiece's unigram model (Kudo, 2018) on raw text, with bytes for rare characters.

The first piece after a space starts with U+2581. Pieces cover any text: a character that the vocabulary lacks
is written as its UTF-8 bytes, such as <0xC3> <0xA9>, so nothing is unknown.
"""

from collections import Counter
from collections.abc import Iterator, Mapping

import sentencepiece

from convs2s.text.vocabulary.bpe import WORD_END, replace_mark

WORD_START = WORD_END  # the same character
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
BYTE_PIECES = {piece: byte for byte, piece in enumerate(BYTES)}
CHUNK_WORDS = 10_000


class Unigram:
    """A learned segmentation of space-separated words into pieces."""

    def __init__(self, model: bytes) -> None:
        self._model = sentencepiece.SentencePieceProcessor(model_proto=model)

    def size(self) -> int:
        """Return the number of pieces, bytes included, but not the unknown piece."""
        return int(self._model.get_piece_size()) - 1

    def pieces(self, word: str) -> list[str]:
        """Return the pieces of a word, the first of which starts with U+2581."""
        pieces: list[str] = self._model.encode(replace_mark(word), out_type=str)
        return pieces

    def parts(self, character: str) -> list[str]:
        """Return the byte pieces of a character that a vocabulary lacks."""
        return [BYTES[byte] for byte in character.encode("utf-8")]

    def words(self, pieces: list[str]) -> list[str]:
        """Return the space-separated words; invalid UTF-8 becomes U+FFFD."""
        text = "".join(from_bytes(pieces))
        return [word for word in text.split(WORD_START) if word]

    def piece_counts(self, counts: Mapping[str, int]) -> Counter[str]:
        """Return how often each piece occurs in text with these word counts; every byte is included."""
        found: Counter[str] = Counter(dict.fromkeys([*BYTES, WORD_START], 0))
        ordered = list(counts)
        for start in range(0, len(ordered), CHUNK_WORDS):
            chunk = ordered[start : start + CHUNK_WORDS]
            segmented = self._model.encode([replace_mark(word) for word in chunk], out_type=str)
            for word, pieces in zip(chunk, segmented, strict=True):
                for piece in pieces:
                    found[piece] += counts[word]
        return found


def from_bytes(pieces: list[str]) -> Iterator[str]:
    """Yield the pieces, with each run of bytes decoded to text."""
    run = bytearray()
    for piece in pieces:
        if piece in BYTE_PIECES:
            run.append(BYTE_PIECES[piece])
            continue
        if run:
            yield run.decode("utf-8", "replace")
            run.clear()
        yield piece
    yield run.decode("utf-8", "replace")
