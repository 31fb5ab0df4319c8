"""Segmentation of imported models by the package subword-nmt (Sennrich et al., 2016)."""

import contextlib
import io
import reprlib
from pathlib import Path
from typing import Any

from convs2s.base.files import read_lines
from convs2s.ids.vocabulary import MOST_DIGITS

CONTINUED = "@@"  # ends a piece whose word continues
VERSIONS = ((0, 1), (0, 2))
"""Of the format of codes: whether a word's last symbol carries its end."""


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
    """
    try:
        from subword_nmt.apply_bpe import BPE  # type: ignore[import-untyped]  # noqa: PLC0415  an extra
    except ModuleNotFoundError as error:
        advice = "which is not installed. Run: pip install 'convs2s[subword-nmt]'"
        raise ValueError(f"BPE codes need the package subword-nmt, {advice}") from error
    codes = io.StringIO("\n".join(read_lines(path)) + "\n")
    pieces = set(read_lines(allowed)) if allowed is not None and allowed.is_file() else None
    try:
        with contextlib.redirect_stderr(io.StringIO()) as printed:
            read = BPE(codes, separator=CONTINUED, vocab=pieces)
            if read.version not in VERSIONS:  # the package would say so at the first word
                raise ValueError(f"its version is {'.'.join(map(str, read.version))}.")
            return read
    # At a wrong line, the package prints it and ends the program.
    except (ValueError, LookupError, SystemExit) as error:
        raise ValueError(
            f"{path}: {printed.getvalue() or error} Expected codes as subword-nmt learn-bpe writes them, two "
            "symbols separated by one space in each line: is this a dictionary?"
        ) from error


def read_pieces(path: Path, threshold: int) -> list[str]:
    """Read the pieces with a count of at least `threshold` from a file written by subword-nmt get-vocab."""
    counts: dict[str, int] = {}
    for number, line in enumerate(read_lines(path), start=1):
        piece, _, count = line.strip(" ").partition(" ")
        if not (piece and count.isdecimal() and len(count) <= MOST_DIGITS) or piece in counts:
            raise ValueError(
                f"{path}, line {number}: expected a piece that is on no line before, a space and its count, "
                f"as subword-nmt get-vocab writes them, found {reprlib.repr(line)}."
            )
        counts[piece] = int(count)
    pieces = [piece for piece, count in counts.items() if count >= threshold]
    if not pieces:
        raise ValueError(f"{path}: expected pieces with a count of {threshold:,} or more, found none.")
    return pieces
