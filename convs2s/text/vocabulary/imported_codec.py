"""Segmentations that imported models need: subword-nmt codes and sentencepiece models (T26).

Unlike with our own segmentations, a piece that the vocabulary lacks is entirely unknown, because these models
were trained that way.
"""

import importlib
import io
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from convs2s.text.corpus.files import read_json, read_lines
from convs2s.text.vocabulary.bpe import WORD_END, Bpe
from convs2s.text.vocabulary.codec import Codec, read_model
from convs2s.text.vocabulary.vocabulary import EOS, PAD, Vocabulary, read_vocabulary

SUBWORD_NMT, SENTENCEPIECE = "subword-nmt", "sentencepiece"
CONTINUED = "@@"  # ends a piece whose word continues
CODES, MODEL = "bpe.codes", "pieces.model"
ALLOWED = "bpe.vocabulary"
"""The source pieces that were allowed in training, one per line; if the file is missing, all were."""


class SubwordNmtCodec(Codec):
    """Pieces of subword-nmt: all but the last piece of a word end in "@@"."""

    def __init__(self, vocabulary: Vocabulary, bpe: Any) -> None:
        """Args: bpe: the result of `read_codes`."""
        super().__init__(vocabulary, None)
        self._codes = bpe

    def decode(self, ids: Iterable[int]) -> list[str]:
        """Return the words; EOS and PAD are dropped, UNK is "<unk>", alone or within a word of pieces."""
        pieces = [self.vocabulary.entry(int(id_)) for id_ in ids if id_ not in (EOS, PAD)]
        text = (" ".join(pieces) + " ").replace(CONTINUED + " ", "")
        return [word for word in text.split(" ") if word]

    def _segment(self, word: str) -> list[str]:
        pieces: list[str] = self._codes.segment_tokens([word])
        self._codes.cache.clear()  # this codec has its own, bounded cache
        return pieces


class SentencePieceCodec(Codec):
    """Pieces of a sentencepiece model, with U+2581 where a word begins or ends."""

    def _segment(self, word: str) -> list[str]:
        return [word] if self._segmentation is None else self._segmentation.pieces(word)


def load_codec(folder: Path, side: str) -> Codec:
    """Read the codec of a side, "source" or "target", of our own or an imported segmentation.

    Raises:
        FileNotFoundError: if a file is missing.
        ValueError: if a file is damaged, or subword-nmt is needed but not installed.
    """
    match imported_kind(folder / "segmentation.json"):
        case "subword-nmt":
            allowed = folder / ALLOWED if side == "source" else None  # it limits the source only
            codes = read_codes(folder / CODES, allowed)
            return SubwordNmtCodec(read_vocabulary(folder / f"{side}.tsv"), codes)
        case "sentencepiece":
            return SentencePieceCodec(
                read_vocabulary(folder / f"{side}.tsv"), read_model(folder / MODEL, Bpe)
            )
    return Codec.load(folder, side)


def imported_kind(path: Path) -> str | None:
    """Return the kind of imported segmentation that a folder has; None for our own.

    Raises:
        FileNotFoundError, ValueError: as `read_json`.
    """
    record = read_json(path)
    kind, imported = record.get("kind"), "joint" not in record  # our own always has "joint"
    return kind if imported and kind in (SUBWORD_NMT, SENTENCEPIECE) else None


def read_codes(path: Path, allowed: Path | None = None) -> Any:
    """Read codes of subword-nmt: an optional version line, then two symbols per line, separated by a space.

    Args:
        path: of the codes.
        allowed: a file, which may be missing, of the only pieces to use, one per line; others are split
            further.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if a line has another form, or the package subword-nmt is not installed.
    """
    lines = list(read_lines(path))
    while lines and not lines[-1]:
        lines.pop()
    first = 1 if lines and lines[0].startswith("#version:") else 0
    for number, line in enumerate(lines[first:], start=first + 1):
        # subword-nmt itself would end the program here.
        if len(line.strip(" ").split(" ")) != 2:
            raise ValueError(
                f"{path}, line {number}: expected two symbols separated by one space, as subword-nmt "
                f"learn-bpe writes them, found {line!r}. Is this the file of codes, not a dictionary?"
            )
    if first and not re.fullmatch(r"#version: \d{1,3}\.\d{1,3}", lines[0]):
        raise ValueError(
            f"{path}, line 1: expected a version such as #version: 0.2, found {lines[0]!r}. Was the "
            "file edited?"
        )
    if not lines[first:]:
        raise ValueError(f"{path} has no merges; expected codes as subword-nmt learn-bpe writes them.")
    try:
        apply_bpe = importlib.import_module("subword_nmt.apply_bpe")
    except ModuleNotFoundError as error:
        raise ValueError(
            "BPE codes need the package subword-nmt, which is not installed. Run: "
            "pip install 'convs2s[subword-nmt]'"
        ) from error
    pieces = set(read_lines(allowed)) if allowed is not None and allowed.is_file() else None
    return apply_bpe.BPE(io.StringIO("\n".join(lines) + "\n"), separator=CONTINUED, vocab=pieces)


def read_pieces(path: Path, threshold: int) -> list[str]:
    """Read the pieces with a count of at least `threshold` from a file written by subword-nmt get-vocab.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if a line is not a piece, a space and its count, or no piece has that count.
    """
    pieces = []
    for number, line in enumerate(read_lines(path), start=1):
        piece, space, count = line.strip(" ").partition(" ")
        if not (piece and space and count.isdecimal()):
            raise ValueError(
                f"{path}, line {number}: expected a piece, a space and its count, as subword-nmt get-vocab "
                f"writes them, found {line!r}."
            )
        if int(count) >= threshold:
            pieces.append(piece)
    if not pieces:
        raise ValueError(f"{path}: expected pieces with a count of {threshold:,} or more, found none.")
    return pieces


def check_pieces_of_words(pieces: Iterable[str], path: Path) -> None:
    """Check that no piece of a sentencepiece vocabulary spans several words.

    Raises:
        ValueError: if one does; the message has the first.
    """
    for piece in pieces:
        if WORD_END in piece[1:-1]:
            raise ValueError(
                f"{path} has the piece {piece!r}, which spans several words; expected pieces of single "
                "words, because text is segmented word by word. Such a model cannot be imported."
            )
