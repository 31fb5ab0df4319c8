"""Byte pair encoding (Sennrich et al., 2016) by sentencepiece, learned from word counts (T26).

A piece that ends a word ends in U+2581. A U+2581 within a word would look like a word end, so it is replaced
with the similar underscore; it is the only character that decoding does not restore.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

import sentencepiece

WORD_END = "\u2581"
CHUNK_WORDS = 10_000


def replace_mark(word: str) -> str:
    """Return the word with every U+2581 replaced with an underscore."""
    return word.replace(WORD_END, "_")


class Bpe:
    """A learned segmentation of words into pieces."""

    def __init__(self, model: bytes) -> None:
        self._model = sentencepiece.SentencePieceProcessor(model_proto=model)

    def size(self) -> int:
        """Return the number of pieces, not counting the unknown one."""
        return int(self._model.get_piece_size()) - 1

    def pieces(self, word: str) -> list[str]:
        """Return the pieces of a word, the last of which ends in U+2581.

        A run of characters that the model does not know becomes its own piece.
        """
        pieces: list[str] = self._model.encode(replace_mark(word), out_type=str)
        return pieces

    def parts(self, character: str) -> list[str]:
        """Return a character that a vocabulary lacks, as a single piece."""
        return [character]

    def words(self, pieces: list[str]) -> list[str]:
        """Return the words that pieces spell; every U+2581 ends a word, as pieces have it nowhere else."""
        return [word for word in "".join(pieces).split(WORD_END) if word]

    def knows(self, piece: str) -> bool:
        return bool(self._model.piece_to_id(piece) != self._model.unk_id())

    def piece_counts(self, counts: Mapping[str, int]) -> Counter[str]:
        """Return how often each piece occurs in text with these word counts; each word is segmented once.

        Every character of the text is included, if only with count 0, and so is the bare word end, so that
        any word made of these characters can be written in these pieces.
        """
        found: Counter[str] = Counter({WORD_END: 0})
        for word, pieces in self._segmented(counts):
            found.update(dict.fromkeys(replace_mark(word), 0))
            for piece in pieces:
                found[piece] += counts[word]
        return found

    def _segmented(self, words: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
        ordered = list(words)
        for start in range(0, len(ordered), CHUNK_WORDS):
            chunk = ordered[start : start + CHUNK_WORDS]
            for word, pieces in zip(
                chunk, self._model.encode([replace_mark(w) for w in chunk], out_type=str), strict=True
            ):
                yield word, [part for piece in pieces for part in ([piece] if self.knows(piece) else piece)]
