"""Sentence pairs from files: one file per language, or two columns of one TSV; plain or compressed."""

import itertools
import logging
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pooch

from convs2s.base.files import open_text, read_lines, read_pairs
from convs2s.base.messages import inflect
from convs2s.config.download import PairFiles
from convs2s.text.sources.memory import read_memory
from convs2s.text.sources.tagged_text import read_segment_pairs, read_tagged_pairs

SEGMENTED_FILE = re.compile(r".*\.(sgml?|xml)(\.(gz|bz2|xz|zst))?", re.IGNORECASE)
GLANCE, FEW = 1000, 10  # rows of a TSV that are looked at, and that tell nothing about the others
NUMBER = re.compile(r"[-+]?[\d.,]+(?:[eE][-+]?\d+)?").fullmatch
QUOTED = re.compile(r"\".*\"|'.*'").fullmatch
ESCAPE = re.compile(r"\\[nrt]").search
HEADINGS = {"source", "src", "target", "tgt", "text", "sentence", "translation", "input", "output", "lang"}

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Part:
    """One source of a split, opened but not yet read."""

    name: str
    """For messages and the progress bar."""
    pairs: Iterator[tuple[str, str]]
    """Source and target: without line ends, otherwise unchanged."""
    provenance: dict[str, Any]
    """What was read, ready for JSON; without times or absolute paths, which differ for the same data."""


def list_names(files: PairFiles) -> list[str]:
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
        pairs = read_pairs(*paths)
    cleaned = ((clean(source), clean(target)) for source, target in pairs)
    return Part(" and ".join(path.name for path in paths), cleaned, provenance)


def read_tsv(path: Path, columns: tuple[int, int], languages: tuple[str, str]) -> Iterator[tuple[str, str]]:
    """Yield two columns of a tab-separated file; quotes have no special meaning."""
    needed = max(columns) + 1
    check_table(path, columns, languages)
    for number, line in enumerate(read_lines(path), start=1):
        cells = line.split("\t")
        if len(cells) < needed:
            raise ValueError(
                f"{path}, line {number}: expected at least {needed} tab-separated columns, to take "
                f"{columns[0]} and {columns[1]}, counted from 0; found {len(cells)}. Correct the line, or "
                "`columns` in params.yaml."
            )
        yield cells[columns[0]], cells[columns[1]]


def check_table(path: Path, columns: tuple[int, int], languages: tuple[str, str]) -> None:
    """Warn of what a person would see in the first rows; raise ValueError if columns cannot be meant."""
    rows = [line.split("\t") for line in itertools.islice(read_lines(path), GLANCE)]
    if not rows or any(len(row) <= max(columns) for row in rows):
        return  # whose line is named when it is read
    sides = {i: [clean(row[i]).strip() for row in rows] for i in columns}
    source, target = sides.values()
    faults = [f"column {i} is empty" for i, cells in sides.items() if not any(cells)]
    faults += [f"column {i} has only numbers" for i, cells in sides.items() if all(map(NUMBER, cells))]
    faults += ["both columns are the same"] if source == target else []
    if faults and len(rows) >= FEW:
        raise ValueError(
            f"{path}: {' and '.join(faults)} in the first {inflect(len(rows), 'row')}. Expected sentences "
            f"and their translations; row 1 is {rows[0]}. Correct `columns` in params.yaml, counted from 0."
        )
    first = [set(re.findall(r"[^\W\d_]+", cells[0].lower())) for cells in (source, target)]
    is_heading = all(words and words <= HEADINGS | {*languages} for words in first)
    is_quoted = len(rows) >= FEW and all(map(QUOTED, source + target))
    uneven = next((i for i, row in enumerate(rows, start=1) if len(row) != len(rows[0])), 0)
    escaped = next((i for i, row in enumerate(rows, start=1) if ESCAPE("\t".join(row))), 0)
    for line, fault in (
        (int(is_heading), "looks like a header: taken as a pair"),
        (int(is_quoted), "and the following have quotes around each field: kept as text; remove them"),
        (uneven, "has more or fewer columns than line 1: read as it is"),
        (escaped, r"has escapes such as \n or \t: kept as text"),
    ):
        if line:
            logger.warning("%s, line %d %s", path, line, fault)


def clean(line: str) -> str:
    """Return a line without leading byte order marks, which concatenated files have in any line."""
    return line.lstrip("\ufeff")


def used_files(paths: Sequence[Path]) -> list[dict[str, str]]:
    """Return the name and hash of each file, for the provenance; without folders, which differ by machine."""
    for path in paths:
        open_text(path).close()  # whose message about a missing file is for people
    return [{"name": path.name, "sha256": pooch.file_hash(path)} for path in paths]
