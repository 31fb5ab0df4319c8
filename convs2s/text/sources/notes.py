"""What a reader of sentence pairs leaves out or finds odd: counted by kind, in one warning per file."""

import logging
import re
from collections.abc import Iterator
from pathlib import Path

from convs2s.base.files import read_lines
from convs2s.base.messages import inflect, visible

logger = logging.getLogger(__name__)

LINE_END = re.compile(r"[\r\v\f\x1c-\x1e\x85\u2028\u2029]")
CONTROL = re.compile(r"[\x00-\x08\x0e-\x1b\x1f\x7f-\x84\x86-\x9f]")


class Notes:
    """Counts what was noticed in a file, with the first line of each kind."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._counts: dict[str, int] = {}
        self._first_lines: dict[str, int] = {}

    def add(self, kind: str, line: int, count: int = 1) -> None:
        """Count cases of this kind; `line` is that of the first, counted from 1."""
        self._counts[kind] = self._counts.get(kind, 0) + count
        self._first_lines.setdefault(kind, line)

    def warn(self, summary: str = "") -> None:
        """Log one warning with all kinds, their numbers and first lines; nothing if there are none.

        Args:
            summary: what to say first.
        """
        kinds = (
            f"{kind}: {count:,}, first in line {self._first_lines[kind]:,}"
            for kind, count in self._counts.items()
        )
        if self._counts:
            logger.warning(
                "%s: %s", self._path, (f"{summary}: " if summary else "") + visible("; ".join(kinds))
            )


def noted_lines(path: Path, notes: Notes) -> Iterator[str]:
    """Yield the lines of a text file as `read_lines`, and note characters that are seldom meant, but kept.

    Raises:
        ValueError: if a line looks like UTF-16, whose ASCII is also UTF-8, with a null beside each character.
    """
    for number, line in enumerate(read_lines(path), start=1):
        if not line.replace("\t", " ").isprintable():  # as most lines are
            nulls = line.count("\0")
            if nulls > max(3, len(line) / 3):
                raise ValueError(
                    f"{path}, line {number}: expected UTF-8, found {inflect(nulls, 'null character')} among "
                    f"{len(line):,}. If it is UTF-16, convert it first: iconv -f utf-16le (or be) -t utf-8."
                )
            if line_ends := LINE_END.findall(line):
                notes.add(r"line ends other than \n, which end no sentence", number, len(line_ends))
            if controls := CONTROL.findall(line):
                notes.add("control characters", number, len(controls))
        yield line
