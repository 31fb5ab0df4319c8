"""Sentence pairs from files: one file per language, or two columns of one TSV; plain or compressed."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pooch

from convs2s.base.files import read_lines, read_pairs
from convs2s.config.download import PairFiles
from convs2s.text.sources.tagged_text import read_segment_pairs, read_tagged_pairs

SEGMENTED_FILE = re.compile(r".*\.(sgml?|xml)(\.(gz|bz2|xz|zst))?", re.IGNORECASE)
BYTE_ORDER_MARK = "\ufeff"


@dataclass(frozen=True)
class Part:
    """One source of a split, opened but not yet read."""

    name: str
    """For messages and the progress bar."""
    pairs: Iterator[tuple[str, str]]
    """Source and target: without line ends, otherwise unchanged."""
    provenance: dict[str, Any]
    """What was requested and read, ready for JSON; without times or absolute paths, which would make the
    same data look new on another day or machine."""


def list_names(files: PairFiles) -> list[str]:
    """Return the names of the two files, or of the one TSV."""
    return [name for name in (files.source, files.target, files.tsv) if name is not None]


def file_part(paths: Sequence[Path], columns: tuple[int, int] | None) -> Part:
    """Open a corpus of files.

    Args:
        paths: the source file and the target file, or one TSV.
        columns: of source and target in the TSV, counted from 0; None for two files.

    Raises:
        FileNotFoundError: if a file is missing.
        ValueError: while reading, if a file is not UTF-8 or damaged, the sides differ in their numbers of
            lines, in segments or in tags, or a line of the TSV has too few columns.
    """
    provenance = {"kind": "files", "files": used_files(paths)}
    pairs = read_two_files(*paths) if columns is None else read_tsv(paths[0], columns)
    return Part(" and ".join(path.name for path in paths), pairs, provenance)


def read_two_files(source: Path, target: Path) -> Iterator[tuple[str, str]]:
    """Yield line i of the source with line i of the target, or segment i, or line i without tags."""
    if any(SEGMENTED_FILE.fullmatch(path.name) for path in (source, target)):
        pairs = read_segment_pairs(source, target)
    elif any(path.name.startswith("train.tags.") for path in (source, target)):
        pairs = read_tagged_pairs(source, target)
    else:
        pairs = read_pairs(source, target)
    return ((clean(source_line), clean(target_line)) for source_line, target_line in pairs)


def read_tsv(path: Path, columns: tuple[int, int]) -> Iterator[tuple[str, str]]:
    """Yield two columns of a tab-separated file; quotes have no special meaning."""
    needed = max(columns) + 1
    for number, line in enumerate(read_lines(path), start=1):
        cells = line.split("\t")
        if len(cells) < needed:
            raise ValueError(
                f"{path}, line {number}: expected at least {needed} tab-separated columns, to take "
                f"{columns[0]} and {columns[1]}, counted from 0; found {len(cells)}. Correct the line, or "
                "`columns` in params.yaml."
            )
        yield clean(cells[columns[0]]), clean(cells[columns[1]])


def clean(line: str) -> str:
    """Return a line without leading byte order marks, which concatenated files have in any line."""
    return line.lstrip(BYTE_ORDER_MARK)


def used_files(paths: Sequence[Path]) -> list[dict[str, str]]:
    """Return the name and hash of each file, for the provenance; without folders, which differ by machine."""
    for path in paths:
        if not path.is_file():
            raise FileNotFoundError(
                f"{path} does not exist or is not a file. Expected a text file, plain or "
                ".gz/.bz2/.xz/.zst: check the names under `download` in params.yaml, which are looked up in "
                "download.folder."
            )
    return [{"name": path.name, "sha256": pooch.file_hash(path)} for path in paths]
