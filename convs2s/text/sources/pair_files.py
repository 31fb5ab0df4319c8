"""Sentence pairs from files: one file per language, or two columns of one TSV; plain or compressed."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pooch

from convs2s.base.files import open_text, read_pairs
from convs2s.base.messages import inflect
from convs2s.config.download import PairFiles
from convs2s.text.headings import is_heading
from convs2s.text.sources.memory import read_memory
from convs2s.text.sources.notes import Notes, noted_lines
from convs2s.text.sources.tagged_text import read_segment_pairs, read_tagged_pairs

SEGMENTED_FILE = re.compile(r".*\.(sgml?|xml)(\.(gz|bz2|xz|zst))?", re.IGNORECASE)
FEW = 10  # rows of a TSV that tell nothing about the others
RARE = 1000  # rows of which one other may look like a header; among fewer, nothing follows from its looks
NUMBER = re.compile(r"[-+]?[\d.,]+(?:[eE][-+]?\d+)?").fullmatch
QUOTED = re.compile(r"\".*\"|'.*'").fullmatch
DOUBLED = re.compile(r'"[^"]*""(?:[^"]|"")*"').fullmatch
QUOTES = "rows with quotes around each field, kept as text"
ESCAPE = re.compile(r"\\[nrt]").search


@dataclass(frozen=True)
class Part:
    """One source of a split, opened but not yet read."""

    name: str
    """For messages and the progress bar."""
    pairs: Iterator[tuple[str, str]]
    """Source and target: without line ends, otherwise unchanged."""
    provenance: dict[str, Any]
    """What was read, ready for JSON; without times or absolute paths, which differ for the same data."""


def list_file_names(files: PairFiles) -> list[str]:
    """Return the names of the two files, or of the one TSV or translation memory."""
    return [name for name in (files.source, files.target, files.tsv, files.memory) if name is not None]


def file_part(paths: Sequence[Path], columns: tuple[int, int] | None, languages: tuple[str, str]) -> Part:
    """Open a corpus of files, whose names say how they are read.

    Args:
        paths: the source file and the target file, or one TSV or translation memory.
        columns: of source and target in the TSV, counted from 0; None without a TSV.
    """
    provenance = {"kind": "files", "files": used_files(paths)}
    if columns is not None:
        pairs = read_tsv(paths[0], columns, languages)
    elif len(paths) == 1:
        pairs = read_memory(paths[0], languages)
    elif any(SEGMENTED_FILE.fullmatch(path.name) for path in paths):
        pairs = read_segment_pairs(*paths)
    elif any(path.name.startswith("train.tags.") for path in paths):
        pairs = read_tagged_pairs(*paths)
    else:
        pairs = read_text_pairs(*paths)
    cleaned = ((clean(source), clean(target)) for source, target in pairs)
    return Part(" and ".join(path.name for path in paths), cleaned, provenance)


def read_text_pairs(source: Path, target: Path) -> Iterator[tuple[str, str]]:
    """Yield line i of the source with line i of the target."""
    notes = {path: Notes(path) for path in (source, target)}
    yield from read_pairs(source, target, lambda path: noted_lines(path, notes[path]))
    for notes_on_file in notes.values():
        notes_on_file.warn()


def read_tsv(path: Path, columns: tuple[int, int], languages: tuple[str, str]) -> Iterator[tuple[str, str]]:
    """Yield two columns of a tab-separated file; quotes have no special meaning."""
    needed = max(columns) + 1
    notes = Notes(path)
    check = TableCheck(path, columns, languages, notes)
    for number, line in enumerate(noted_lines(path, notes), start=1):
        cells = line.split("\t")
        if len(cells) < needed:
            raise ValueError(
                f"{path}, line {number}: expected at least {needed} tab-separated columns, to take "
                f"{columns[0]} and {columns[1]}, counted from 0; found {len(cells)}. Correct the line, or "
                "`columns` in params.yaml."
            )
        check.see(number, line, cells)
        yield cells[columns[0]], cells[columns[1]]
    check.conclude()
    notes.warn()


class TableCheck:
    """Notes what a person would see in a table, while its rows are read.

    Args:
        columns: of source and target, counted from 0.
        languages: codes of source and target, which a header may have.
        notes: gets what is odd in some rows.
    """

    def __init__(
        self, path: Path, columns: tuple[int, int], languages: tuple[str, str], notes: Notes
    ) -> None:
        self._path = path
        self._columns = columns
        self._languages = languages
        self._notes = notes
        self._rows = 0
        self._first_row: list[str] = []
        self._is_like_header = False
        self._others_like_header = 0
        self._numeric_below = set[int]()  # columns that have numbers in all rows but the first
        # What has been true of all rows.
        self._always: dict[str, Callable[[str, str], object]] = {
            f"column {columns[0]} is empty": lambda source, _: not source,
            f"column {columns[1]} is empty": lambda _, target: not target,
            f"column {columns[0]} has only numbers": lambda source, _: NUMBER(source),
            f"column {columns[1]} has only numbers": lambda _, target: NUMBER(target),
            "both columns are the same": lambda source, target: source == target,
            QUOTES: lambda source, target: QUOTED(source) and QUOTED(target),
        }

    def see(self, number: int, line: str, cells: list[str]) -> None:
        """Look at a row, with its number from 1."""
        self._rows = number
        if number == 1:
            self._first_row = cells
            self._is_like_header = all(map(is_label, self._sides(cells)))
            self._numeric_below = {i for i, cell in enumerate(cells) if not NUMBER(cell)}
        elif self._is_like_header and all(map(is_label, self._sides(cells))):
            self._others_like_header += 1
        if self._numeric_below and number > 1:
            self._numeric_below = {i for i in self._numeric_below if i < len(cells) and NUMBER(cells[i])}
        if self._always:
            source, target = self._sides(cells)
            self._always = {fault: test for fault, test in self._always.items() if test(source, target)}
        if len(cells) != len(self._first_row):
            self._notes.add("rows with more or fewer columns than row 1, read as they are", number)
        if "\\" in line and ESCAPE(line):
            self._notes.add(r"rows with escapes such as \n or \t, kept as text", number)
        if '""' in line and any(map(DOUBLED, cells)):
            self._notes.add("rows with fields in quotes and quotes doubled, kept as text", number)

    def conclude(self) -> None:
        """Note what only the whole table shows; raise ValueError if its columns cannot be meant."""
        if self._rows >= FEW and QUOTES in self._always:
            self._notes.add(QUOTES, 1, self._rows)
        faults = [fault for fault in self._always if fault != QUOTES]
        if self._rows >= FEW and faults:
            raise ValueError(
                f"{self._path}: {' and '.join(faults)} in all {inflect(self._rows, 'row')}. Expected "
                f"sentences and their translations; row 1 is {self._first_row}. Correct `columns` in "
                "params.yaml, counted from 0."
            )
        if self._rows and self._has_header():
            self._notes.add("a row that looks like a header, taken as a pair", 1)

    def _has_header(self) -> bool:
        """Return whether row 1 names the columns, judging by its words, or as no other row is like it."""
        if is_heading(self._sides(self._first_row), self._languages):
            return True
        # A short sentence without a full stop, by chance the only one, is far more common than a header.
        is_like_no_other = self._is_like_header and self._others_like_header * RARE < self._rows
        return (is_like_no_other and self._rows >= RARE) or (self._rows >= FEW and bool(self._numeric_below))

    def _sides(self, cells: list[str]) -> list[str]:
        return [clean(cells[i]).strip() for i in self._columns]


def is_label(cell: str) -> bool:
    """Return whether a field of a table could name its column: few words, and no end of a sentence."""
    return bool(cell) and cell.count(" ") < 3 and (cell[-1].isalnum() or cell[-1] in ")]_")


def clean(line: str) -> str:
    """Return a line without what joined or twice converted files have: byte order marks, final returns."""
    return line.lstrip("\ufeff").rstrip("\r")


def used_files(paths: Sequence[Path]) -> list[dict[str, str]]:
    """Return the name and hash of each file, for the provenance; without folders, which differ by machine."""
    for path in paths:
        open_text(path).close()  # whose message about a missing file is for people
    return [{"name": path.name, "sha256": pooch.file_hash(path)} for path in paths]
