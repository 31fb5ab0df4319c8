"""Segmentation of imported models by the package subword-nmt (Sennrich et al., 2016)."""

import io
import re
from pathlib import Path
from typing import Any

from convs2s.base.files import read_lines

CONTINUED = "@@"  # ends a piece whose word continues


class SubwordNmt:
    """Pieces of subword-nmt, by codes from `read_codes`; all but the last piece of a word end in "@@"."""

    def __init__(self, codes: Any) -> None:
        self._codes = codes

    def pieces(self, word: str) -> list[str]:
        """Return the pieces of a word."""
        pieces: list[str] = self._codes.segment_tokens([word])
        self._codes.cache.clear()  # `Codec` has a cache, which is bounded
        return pieces

    def words(self, pieces: list[str]) -> list[str]:
        """Return the words that pieces spell."""
        text = (" ".join(pieces) + " ").replace(CONTINUED + " ", "")
        return [word for word in text.split(" ") if word]


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
    lines = "\n".join(read_lines(path)).rstrip("\n").split("\n")
    first = 1 if re.fullmatch(r"#version: \d{1,3}\.\d{1,3}", lines[0]) else 0
    for number, line in enumerate(lines[first:] or [""], start=first + 1):
        # subword-nmt itself would end the program at such a line.
        if len(line.strip(" ").split(" ")) != 2 or line.startswith("#version:"):
            raise ValueError(
                f"{path}, line {number}: expected two symbols separated by one space, as subword-nmt "
                f"learn-bpe writes them, found {line!r}. Is this the file of codes, not a dictionary?"
            )
    try:
        from subword_nmt.apply_bpe import BPE  # type: ignore[import-untyped]  # noqa: PLC0415  an extra
    except ModuleNotFoundError as error:
        advice = "which is not installed. Run: pip install 'convs2s[subword-nmt]'"
        raise ValueError(f"BPE codes need the package subword-nmt, {advice}") from error
    pieces = set(read_lines(allowed)) if allowed is not None and allowed.is_file() else None
    return BPE(io.StringIO("\n".join(lines) + "\n"), separator=CONTINUED, vocab=pieces)


def read_pieces(path: Path, threshold: int) -> list[str]:
    """Read the pieces with a count of at least `threshold` from a file written by subword-nmt get-vocab.

    Raises:
        ValueError: if a line is not a piece, a space and its count, or no piece has that count.
    """
    pieces = []
    for number, line in enumerate(read_lines(path), start=1):
        piece, _, count = line.strip(" ").partition(" ")
        if not (piece and count.isdecimal()):
            raise ValueError(
                f"{path}, line {number}: expected a piece, a space and its count, as subword-nmt get-vocab "
                f"writes them, found {line!r}."
            )
        if int(count) >= threshold:
            pieces.append(piece)
    if not pieces:
        raise ValueError(f"{path}: expected pieces with a count of {threshold:,} or more, found none.")
    return pieces
