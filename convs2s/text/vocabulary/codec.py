"""Words <-> ids of one side: segmentation and vocabulary, stored in one folder."""

import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, Self

from convs2s.base.files import SIDES, atomic_path, read_json
from convs2s.ids.vocabulary import EOS, PAD, UNK, Vocabulary, read_counts, read_vocabulary
from convs2s.text.vocabulary.segmentation import (
    BYTE_PIECES,
    WORD_MARK,
    Bpe,
    Unigram,
    read_model,
    replace_mark,
)
from convs2s.text.vocabulary.subword_nmt import SubwordNmt, read_codes

KINDS = ("bpe", "sentencepiece", "word", "subword-nmt")
CODES, IMPORTED_MODEL = "bpe.codes", "pieces.model"
"""Files of imported models, in place of a model for each side."""
ALLOWED = "bpe.vocabulary"
"""The source pieces that an imported model allowed in training, one per line; if it is missing, all."""
FILES = ("segmentation.json", *(f"{side}{end}" for side in SIDES for end in (".tsv", ".model")))
"""Files of the stage vocabulary; word vocabularies have no models."""
CACHED_WORDS = 50_000

Segmentation = Bpe | SubwordNmt


class Written(NamedTuple):
    """A word as its pieces, and their ids."""

    pieces: list[str]
    ids: list[int]


class Codec:
    """Writes words as pieces and ids, and reads ids as words.

    Args:
        segmentation: None if the entries are words.
        cuts: whether a piece that the vocabulary lacks is cut into entries. Imported models were trained
            with such pieces entirely unknown.
        trained_bytes: the bytes that occurred in training, if characters may be written as bytes.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        segmentation: Segmentation | None,
        cuts: bool = True,
        trained_bytes: frozenset[int] = frozenset(range(256)),
    ) -> None:
        self.vocabulary = vocabulary
        self._segmentation = segmentation
        self._cutter = segmentation if cuts and isinstance(segmentation, Bpe) else None
        self._trained_bytes = trained_bytes
        entries = vocabulary.entries
        spelled = (entry for entry in entries if entry not in BYTE_PIECES)
        self._seen = set().union(*spelled) - {WORD_MARK}
        self._longest = max(map(len, entries), default=1)
        self._cache: dict[str, Written] = {}

    @classmethod
    def load(cls, folder: Path, side: str) -> Self:
        """Read the codec of a side, "source" or "target", of our own or an imported segmentation."""
        vocabulary = read_vocabulary(folder / f"{side}.tsv")
        kind = read_kind(folder / "segmentation.json")
        if kind == "word":
            return cls(vocabulary, None)
        if kind == "subword-nmt":
            allowed = folder / ALLOWED if side == "source" else None  # it limits the source only
            return cls(vocabulary, SubwordNmt(read_codes(folder / CODES, allowed)))
        if (folder / IMPORTED_MODEL).is_file():
            return cls(vocabulary, read_model(folder / IMPORTED_MODEL, Bpe), cuts=False)
        if kind == "bpe":
            return cls(vocabulary, read_model(folder / f"{side}.model", Bpe))
        counts = read_counts(folder / f"{side}.tsv", "vocabulary")
        trained = frozenset(byte for piece, byte in BYTE_PIECES.items() if counts.get(piece, 0))
        return cls(vocabulary, read_model(folder / f"{side}.model", Unigram), trained_bytes=trained)

    def has_seen(self, text: str) -> bool:
        """Return whether the model saw each character of these words in training.

        Our own pieces cover all training text, so `<unk>`, or a byte that no character had, was never
        trained. Vocabularies of words, and imported ones, are limited: training teaches `<unk>`, and this is
        always true.
        """
        if self._cutter is None or self._seen.issuperset(text):
            return True
        self._seen.update(filter(self._has_seen_character, {*text} - self._seen))
        return self._seen.issuperset(text)

    def _has_seen_character(self, character: str) -> bool:
        written = replace_mark(character)
        if written in self.vocabulary:
            return True
        can_be_bytes = isinstance(self._segmentation, Unigram)
        return can_be_bytes and self._trained_bytes.issuperset(written.encode("utf-8"))

    def pieces(self, words: list[str]) -> list[str]:
        """Return the words' pieces; a character that the vocabulary lacks is a piece, with id UNK."""
        return [piece for word in words for piece in self._write(word).pieces]

    def word_of_piece(self, words: list[str]) -> list[int]:
        """Return, for each piece, the index of the word that it belongs to."""
        return [i for i, word in enumerate(words) for _ in self._write(word).pieces]

    def encode(self, words: list[str]) -> list[int]:
        """Return the ids of the words' pieces, followed by EOS."""
        cached = self._cache.get  # called for each word of a corpus
        ids: list[int] = []
        for word in words:
            ids += (cached(word) or self._write(word)).ids
        ids.append(EOS)
        return ids

    def decode(self, ids: Iterable[int]) -> list[str]:
        """Return the words; EOS and PAD are dropped, UNK is "<unk>", alone or within a word of pieces."""
        pieces = [self.vocabulary.entry(int(id_)) for id_ in ids if id_ not in (EOS, PAD)]
        return pieces if self._segmentation is None else self._segmentation.words(pieces)

    def word_of_entry(self, entries: list[str]) -> list[int]:
        """Return, for each entry of a sentence, the index of its word; -1 for a mere mark."""
        if self._segmentation is None:
            return list(range(len(entries)))
        spelled = self._segmentation.words
        return [
            len(spelled(entries[: i + 1])) - 1 if spelled([entry]) else -1 for i, entry in enumerate(entries)
        ]

    def _write(self, word: str) -> Written:
        """Return a word as pieces and ids; segmentation sees one word at a time, so they can be cached."""
        if word not in self._cache:
            if len(self._cache) >= CACHED_WORDS:
                self._cache.clear()  # keep it bounded; frequent words soon return
            pieces = [word] if self._segmentation is None else self._segmentation.pieces(word)
            ids = self.vocabulary.ids(pieces)
            if self._cutter and UNK in ids:
                pieces = [part for piece in pieces for part in self._cut(piece, self._cutter)]
                ids = self.vocabulary.ids(pieces)
            self._cache[word] = Written(pieces, ids)
        return self._cache[word]

    def _cut(self, piece: str, segmentation: Bpe) -> Iterator[str]:
        """Yield the piece or, if this side's vocabulary lacks it, the longest entries that make it up."""
        start = 0
        while start < len(piece):
            end = min(len(piece), start + self._longest)
            while end > start + 1 and piece[start:end] not in self.vocabulary:
                end -= 1
            part = piece[start:end]
            yield from [part] if part in self.vocabulary else segmentation.parts(part)
            start = end


def read_kind(path: Path) -> str:
    """Return one of `KINDS`, from segmentation.json; a FileNotFoundError or ValueError if there is none."""
    kind = read_json(path).get("kind")
    if kind not in KINDS:
        raise ValueError(
            f"{path}: expected a kind of {', '.join(KINDS)}, found {kind!r}. Make the file again."
        )
    return str(kind)


def copy_codecs(folder: Path, out: Path) -> None:
    """Copy the codecs of both sides from a folder that may have other files, too."""
    with atomic_path(out) as temporary:
        temporary.mkdir()
        for name in (*FILES, CODES, IMPORTED_MODEL, ALLOWED):
            if (folder / name).is_file():
                shutil.copyfile(folder / name, temporary / name)
