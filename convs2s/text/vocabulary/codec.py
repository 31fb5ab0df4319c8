"""Words <-> ids of one side: segmentation and vocabulary, stored in one folder."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Protocol, Self

from convs2s.text.corpus.files import read_json
from convs2s.text.vocabulary.bpe import Bpe
from convs2s.text.vocabulary.unigram import Unigram
from convs2s.text.vocabulary.vocabulary import EOS, PAD, Vocabulary, read_vocabulary

CACHED_WORDS = 50_000


class Segmentation(Protocol):
    """Words <-> pieces of words."""

    def pieces(self, word: str, /) -> list[str]:
        """Return the pieces of a word."""

    def parts(self, character: str, /) -> list[str]:
        """Return the pieces for a character that a vocabulary lacks."""

    def words(self, pieces: list[str], /) -> list[str]:
        """Return the words that pieces spell."""


SEGMENTATIONS: dict[str, Callable[[bytes], Segmentation]] = {"bpe": Bpe, "sentencepiece": Unigram}


class Codec:
    """Writes words as pieces and ids, and reads ids as words."""

    def __init__(self, vocabulary: Vocabulary, segmentation: Segmentation | None) -> None:
        """Args: segmentation: None if the entries are words."""
        self.vocabulary = vocabulary
        self._segmentation = segmentation
        self._longest = max(map(len, vocabulary.entries), default=1)
        self._cache: dict[str, tuple[list[str], list[int]]] = {}

    @classmethod
    def load(cls, folder: Path, side: str) -> Self:
        """Read the codec of a side, "source" or "target".

        Raises:
            FileNotFoundError: if a file is missing.
            ValueError: if segmentation.json, the vocabulary or the model is damaged.
        """
        vocabulary = read_vocabulary(folder / f"{side}.tsv")
        kind = read_kind(folder / "segmentation.json")
        if kind == "word":
            return cls(vocabulary, None)
        return cls(vocabulary, read_model(folder / f"{side}.model", SEGMENTATIONS[kind]))

    def pieces(self, words: list[str]) -> list[str]:
        """Return the words' pieces; a character that the vocabulary lacks is a piece, with id UNK."""
        return [piece for word in words for piece in self._word(word)[0]]

    def word_of_piece(self, words: list[str]) -> list[int]:
        """Return, for each piece, the index of the word that it belongs to."""
        return [i for i, word in enumerate(words) for _ in self._word(word)[0]]

    def encode(self, words: list[str]) -> list[int]:
        """Return the ids of the words' pieces, followed by EOS."""
        ids: list[int] = []
        for word in words:
            ids += self._word(word)[1]
        ids.append(EOS)
        return ids

    def decode(self, ids: Iterable[int]) -> list[str]:
        """Return the words; EOS and PAD are dropped, UNK is "<unk>", alone or within a word of pieces."""
        pieces = [self.vocabulary.entry(int(id_)) for id_ in ids if id_ not in (EOS, PAD)]
        return pieces if self._segmentation is None else self._segmentation.words(pieces)

    def _word(self, word: str) -> tuple[list[str], list[int]]:
        """Return a word's pieces and ids; segmentation sees one word at a time, so both can be cached."""
        known = self._cache.get(word)
        if known is None:
            if len(self._cache) >= CACHED_WORDS:
                self._cache.clear()  # keep it bounded; frequent words soon return
            pieces = self._segment(word)
            known = self._cache[word] = (pieces, self.vocabulary.ids(pieces))
        return known

    def _segment(self, word: str) -> list[str]:
        if self._segmentation is None:
            return [word]
        return [part for piece in self._segmentation.pieces(word) for part in self._cut(piece)]

    def _cut(self, piece: str) -> Iterator[str]:
        """Yield the piece or, if this side's vocabulary lacks it, the longest entries that make it up."""
        assert self._segmentation is not None
        start = 0
        while start < len(piece):
            end = min(len(piece), start + self._longest)
            while end > start + 1 and piece[start:end] not in self.vocabulary:
                end -= 1
            part = piece[start:end]
            yield from [part] if part in self.vocabulary else self._segmentation.parts(part)
            start = end


def read_kind(path: Path) -> str:
    """Return "bpe", "sentencepiece" or "word".

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it was not written by `write_codecs`.
    """
    kind = read_json(path).get("kind")
    if kind not in (*SEGMENTATIONS, "word"):
        raise ValueError(
            f"{path} has the kind {kind!r}; expected bpe, sentencepiece or word. Was the file edited? Make "
            "it again: dvc repro -f vocabulary."
        )
    return str(kind)


def read_model(path: Path, kind: Callable[[bytes], Segmentation]) -> Segmentation:
    """Read a sentencepiece model of a kind.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it is not a sentencepiece model.
    """
    if not path.is_file():
        raise FileNotFoundError(
            f"{path} does not exist. Expected the folder written by the stage vocabulary: run dvc repro "
            "vocabulary, or copy the whole folder."
        )
    content = path.read_bytes()
    try:
        if not content:  # sentencepiece would accept this as "no model yet", and fail at the first word
            raise RuntimeError("it is empty")
        return kind(content)
    except RuntimeError as error:
        raise ValueError(
            f"{path} is not a sentencepiece model ({error}). Expected the complete file written by the stage "
            "vocabulary: make it again with dvc repro -f vocabulary, or copy it again."
        ) from error
