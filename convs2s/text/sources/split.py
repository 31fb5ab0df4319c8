"""The parts of a split, concatenated into two line-by-line text files."""

import hashlib
import itertools
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from convs2s.base.files import SIDES, PairWriter, atomic_path, read_lines, write_json, write_lines
from convs2s.base.messages import inflect
from convs2s.base.parallel import with_progress
from convs2s.text.sources.pair_files import Part, clean, used_files


def write_split(
    parts: Sequence[Part], folder: Path, references: Sequence[Path] = (), sample: int | None = None
) -> None:
    """Write source.txt, target.txt and provenance.json; further references become target.2.txt and so on.

    The folder appears only once complete. Without parts, the files are empty.

    Args:
        references: files with further references, one line per pair.
        sample: pairs to keep, drawn at random; None keeps all.
    """
    with atomic_path(folder) as temporary:
        with PairWriter(temporary) as writer:
            sources = [write_part(part, writer) for part in parts]
        lines = sum(part["lines"] for part in sources)
        if sample is not None:
            draw(temporary, lines, sample)
            lines = sample
        provenance: dict[str, Any] = {"lines": lines, "sources": sources}
        if references:
            provenance["references"] = used_files(references)
        for number, path in enumerate(references, start=2):
            reference_lines = [clean(line) for line in read_lines(path)]
            if len(reference_lines) != lines:
                raise ValueError(
                    f"{path}: expected {inflect(lines, 'line')}, one reference per test pair, found "
                    f"{len(reference_lines):,}. Is it the right file for download.test.references?"
                )
            write_lines(temporary / f"target.{number}.txt", reference_lines)
        write_json(temporary / "provenance.json", provenance)


def draw(folder: Path, lines: int, sample: int) -> None:
    """Keep this many of a folder's pairs, drawn at random, in their order; the same ones every time."""
    if sample > lines:
        raise ValueError(
            f"download.train.pairs: expected at most {lines:,}, the pairs of all its sources, found "
            f"{sample:,}. null takes all of them."
        )
    dice = random.Random(1)
    left = sample  # to be drawn
    is_drawn = bytearray(lines)
    for number in range(lines):
        # Selection sampling: all sets of lines are equally likely (Knuth, volume 2, algorithm S).
        if dice.random() * (lines - number) < left:
            is_drawn[number] = True
            left -= 1
    for side in SIDES:
        path = folder / f"{side}.txt"
        write_lines(path, itertools.compress(read_lines(path), is_drawn))


def write_part(part: Part, writer: PairWriter) -> dict[str, Any]:
    """Write a part's pairs; return its provenance with the number of lines and their hash."""
    lines = 0
    digest = hashlib.sha256()
    for source, target in with_progress(part.pairs, part.name, "pairs"):
        digest.update(f"{source}\t{target}\n".encode())
        writer.write(source, target)
        lines += 1
    if lines == 0:
        raise ValueError(f"{part.name} has no sentence pairs. Expected at least one: is it the right file?")
    return {**part.provenance, "lines": lines, "pairs_sha256": digest.hexdigest()}
