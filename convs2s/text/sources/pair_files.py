"""Sentence pairs from files: one file per language, or two columns of one TSV; plain or compressed.

The file name determines the format: .sgm and .xml are the segments of a test set, train.tags.* the tagged
talks of WIT3; anything else is plain lines of text.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pooch

from convs2s.text.corpus.files import read_lines, read_pairs
from convs2s.text.sources.tagged_text import is_segmented, is_tagged, read_segment_pairs, read_tagged_pairs

BYTE_ORDER_MARK = "\ufeff"


class RawPair(NamedTuple):
    """A sentence pair as found in its source: without line ends, otherwise unchanged."""

    source: str
    target: str


@dataclass(frozen=True)
class Part:
    """One source of a split, opened but not yet read."""

    name: str
    """For messages and the progress bar."""
    pairs: Iterator[RawPair]
    provenance: dict[str, Any]
    """What was requested and found, ready for JSON; without times or absolute paths, which would make the
    same data look new on another day or machine."""
    expected_sha256: str | None = None
    """The hash that the pairs must have, as 'source TAB target LF' lines; None if unknown."""


def file_part(paths: list[Path], columns: tuple[int, int] | None) -> Part:
    """Open a corpus of files.

    Args:
        paths: the source file and the target file, or one TSV.
        columns: of source and target in the TSV, counted from 0; None for two files.

    Raises:
        FileNotFoundError: if a file is missing.
        ValueError: while reading, as `read_two_files` and `read_tsv`.
    """
    missing = [path for path in paths if not path.is_file()]
    if missing:
        raise FileNotFoundError(
            f"{missing[0]} does not exist or is not a file. Expected a text file, plain or "
            ".gz/.bz2/.xz/.zst: check the names under `download` in params.yaml, which are looked up in "
            "download.folder."
        )
    pairs = read_two_files(*paths) if columns is None else read_tsv(paths[0], columns)
    provenance = {"kind": "files", "files": used_files(paths)}
    return Part(" and ".join(path.name for path in paths), pairs, provenance)


def read_two_files(source: Path, target: Path) -> Iterator[RawPair]:
    """Yield line i of the source with line i of the target, or segment i, or line i without tags.

    Raises:
        ValueError: if a file is not UTF-8 or damaged, if the files differ in number of lines, segments or
            tags, or if only one of them has segments or tags, judging by its name.
    """
    for source_line, target_line in reader(source, target)(source, target):
        yield RawPair(clean(source_line), clean(target_line))


def reader(source: Path, target: Path) -> Callable[[Path, Path], Iterator[tuple[str, str]]]:
    """Return the function that reads two files with these names.

    Raises:
        ValueError: if the files are of different kinds.
    """
    known = {is_segmented: read_segment_pairs, is_tagged: read_tagged_pairs}
    for is_such, read in known.items():
        if is_such(source) and is_such(target):
            return read
        if is_such(source) or is_such(target):
            one, other = (source, target) if is_such(source) else (target, source)
            raise ValueError(
                f"{one.name} has segments or tags, judging by its name, but {other.name} does not. "
                "Expected two files of the same kind: .sgm or .xml, train.tags.*, or plain text."
            )
    return read_pairs


def read_tsv(path: Path, columns: tuple[int, int]) -> Iterator[RawPair]:
    """Yield two columns of a tab-separated file; quotes have no special meaning.

    Raises:
        ValueError: if the file is not UTF-8 or damaged, or a line has too few columns.
    """
    needed = max(columns) + 1
    for number, line in enumerate(read_lines(path), start=1):
        cells = line.split("\t")
        if len(cells) < needed:
            raise ValueError(
                f"{path}, line {number}: expected at least {needed} tab-separated columns, to take "
                f"{columns[0]} and {columns[1]}, counted from 0; found {len(cells)}. Correct the line, or "
                "`columns` in params.yaml."
            )
        yield RawPair(clean(cells[columns[0]]), clean(cells[columns[1]]))


def clean(line: str) -> str:
    """Return a line without leading byte order marks, which concatenated files have in any line."""
    return line.lstrip(BYTE_ORDER_MARK)


def used_files(paths: Sequence[Path]) -> list[dict[str, str]]:
    """Return the name and hash of each file, for the provenance; without folders, which differ by machine."""
    return [{"name": path.name, "sha256": pooch.file_hash(path)} for path in paths]
