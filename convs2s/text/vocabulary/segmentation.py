"""Words <-> pieces, by models that sentencepiece learned from word counts (T26).

U+2581 marks where a word ends or starts. Within a word it would look like such a mark, so it is replaced with
the similar underscore; it is the only character that joining pieces does not restore.
"""

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import sentencepiece

WORD_MARK = "\u2581"
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
BYTE_PIECES = {piece: byte for byte, piece in enumerate(BYTES)}


def replace_mark(word: str) -> str:
    """Return the word with every U+2581 replaced with an underscore."""
    return word.replace(WORD_MARK, "_")


class Bpe:
    """Byte pair encoding (Sennrich et al., 2016); the last piece of a word ends in U+2581."""

    def __init__(self, model: bytes) -> None:
        self._model = sentencepiece.SentencePieceProcessor(model_proto=model)

    def pieces(self, word: str) -> list[str]:
        """Return the pieces of a word; a run of characters that the model lacks is its own piece."""
        pieces: list[str] = self._model.encode(replace_mark(word), out_type=str)
        return pieces

    def parts(self, character: str) -> list[str]:
        """Return a character that a vocabulary lacks, as a single piece."""
        return [character]

    def words(self, pieces: list[str]) -> list[str]:
        """Return the words that pieces spell."""
        return [word for word in "".join(pieces).split(WORD_MARK) if word]

    def basic_pieces(self, words: Iterable[str]) -> set[str]:
        """Return pieces with which any word of the same characters can be written."""
        return {WORD_MARK}.union(*map(replace_mark, words))

    def piece_counts(self, counts: Mapping[str, int]) -> Counter[str]:
        """Return how often each piece, basic ones included, occurs in text with these word counts."""
        pieces = Counter(dict.fromkeys(self.basic_pieces(counts), 0))
        for word, count in counts.items():
            for piece in self.pieces(word):
                pieces[piece] += count
        return pieces


class Unigram(Bpe):
    """SentencePiece's unigram model (Kudo, 2018); the first piece of a word starts with U+2581.

    Pieces cover any text: a character that the vocabulary lacks is written as its UTF-8 bytes, such as
    <0xC3> <0xA9>, so nothing is unknown.
    """

    def parts(self, character: str) -> list[str]:
        """Return the byte pieces of a character that a vocabulary lacks."""
        return [BYTES[byte] for byte in character.encode("utf-8")]

    def words(self, pieces: list[str]) -> list[str]:
        """Return the words that pieces spell; invalid UTF-8 becomes U+FFFD."""
        return super().words(list(decode_bytes(pieces)))

    def basic_pieces(self, words: Iterable[str]) -> set[str]:
        """Return pieces with which any word can be written."""
        return {WORD_MARK, *BYTES}


def decode_bytes(pieces: list[str]) -> Iterator[str]:
    """Yield the pieces, with each run of bytes decoded to text."""
    for is_byte, run in itertools.groupby(pieces, BYTE_PIECES.__contains__):
        if is_byte:
            yield bytes(BYTE_PIECES[piece] for piece in run).decode("utf-8", "replace")
        else:
            yield from run


def read_model(path: Path, kind: type[Bpe]) -> Bpe:
    """Read a sentencepiece model; raise FileNotFoundError or ValueError if there is none."""
    content = path.read_bytes()
    try:
        if not content:  # sentencepiece would accept this as "no model yet", and fail at the first word
            raise RuntimeError("it is empty")
        return kind(content)
    except RuntimeError as error:
        raise ValueError(
            f"{path} is not a SentencePiece model ({error}). Expected the whole file that its training "
            "wrote: make it or copy it again."
        ) from error
