"""The dictionary of unknown-word replacement: source word -> most frequently linked word (§4.3, T33).

It is a table in a text file, one source word per line, which can be read and corrected by hand.
"""

import reprlib
from collections.abc import Iterable
from dataclasses import astuple, dataclass
from pathlib import Path

from convs2s.base.files import read_lines, write_lines

HEADER = "source\ttarget\tcount\tlinks"


@dataclass(frozen=True, order=True, slots=True)
class Entry:
    """A source word, the target word it is most often linked with, and their counts."""

    source: str
    target: str
    count: int
    """Links between the two."""
    links: int
    """Links of the source word with any target word."""


def write_dictionary(path: Path, entries: Iterable[Entry]) -> None:
    """Write entries as tab-separated lines below a header; written atomically."""
    write_lines(path, [HEADER, *("\t".join(map(str, astuple(entry))) for entry in entries)])


def read_dictionary(path: Path) -> dict[str, str]:
    """Return source word -> target word; a FileNotFoundError, or a ValueError with a faulty line's number."""
    lines = read_lines(path)
    header = next(lines, "")
    if header != HEADER:
        raise ValueError(
            f"{path}, line 1: expected the header {HEADER!r}, found {header!r}. Is this a dictionary? "
            "Write it again with: dvc repro align"
        )
    dictionary: dict[str, str] = {}
    for number, line in enumerate(lines, start=2):
        columns = line.split("\t")
        is_entry = len(columns) == 4 and all(columns) and all(text.isdecimal() for text in columns[2:])
        if not is_entry or " " in columns[0] or columns[0] in dictionary:
            raise ValueError(
                f"{path}, line {number}: expected four tab-separated columns (source, target, count, links), "
                "the source a word that is on no line before, the last two whole numbers, found "
                f"{reprlib.repr(line)}. Correct the line or delete it."
            )
        dictionary[columns[0]] = columns[1]
    return dictionary
