"""The dictionary of unknown-word replacement: source word -> most frequently linked word (§4.3, T33).

It is a table in a text file, one source word per line, which can be read and corrected by hand.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from convs2s.text.corpus.files import read_lines, write_lines
from convs2s.text.counted import counted

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
    write_lines(path, lines_of(entries))


def lines_of(entries: Iterable[Entry]) -> Iterator[str]:
    """Yield the header and a line for each entry."""
    yield HEADER
    for entry in entries:
        yield f"{entry.source}\t{entry.target}\t{entry.count}\t{entry.links}"


def read_dictionary(path: Path) -> dict[str, str]:
    """Return source word -> target word.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if the header or a line has another format than `write_dictionary` writes; the message
            has the line number.
    """
    lines = read_lines(path)
    header = next(lines, "")
    if header != HEADER:
        raise ValueError(
            f"{path}, line 1: expected the header {HEADER!r}, found {header!r}. Is this a dictionary? "
            "Write it again with: dvc repro align"
        )
    dictionary: dict[str, str] = {}
    for number, line in enumerate(lines, start=2):
        entry = parse(line, f"{path}, line {number}")
        if entry.source in dictionary:
            raise ValueError(
                f"{path}, line {number}: expected one entry per source word, found another for "
                f"{entry.source!r} besides {dictionary[entry.source]!r}. Delete one of the two lines."
            )
        dictionary[entry.source] = entry.target
    return dictionary


def parse(line: str, place: str) -> Entry:
    """Return the entry in a line of a dictionary; `place` is for error messages."""
    columns = line.split("\t")
    if len(columns) != 4 or not all(columns):
        raise ValueError(
            f"{place}: expected four tab-separated columns ({HEADER.replace(chr(9), ', ')}), found {line!r}. "
            "Correct the line or delete it."
        )
    source, target, *numbers = columns
    if not all(number.isascii() and number.isdigit() for number in numbers):
        raise ValueError(
            f"{place}: expected whole numbers, found the counts {numbers[0]!r} and {numbers[1]!r}. "
            "Correct the line."
        )
    entry = Entry(source, target, int(numbers[0]), int(numbers[1]))
    if not 1 <= entry.count <= entry.links:
        raise ValueError(
            f"{place}: expected a count of at least 1 and at most all links, found {entry.count} of "
            f"{counted(entry.links, 'link')}. Correct the line."
        )
    return entry
