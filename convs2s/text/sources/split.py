"""The parts of a split, concatenated into two line-by-line text files."""

import hashlib
import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, Literal

from convs2s.text.corpus.files import atomic_path, read_lines, write_lines
from convs2s.text.corpus.parallel import with_progress
from convs2s.text.counted import counted
from convs2s.text.sources.pair_files import Part, clean, used_files

Split = Literal["train", "valid", "development", "test"]


def write_split(
    parts: Sequence[Part], folder: Path, references: Sequence[Path] = (), sample: int | None = None
) -> None:
    """Write source.txt, target.txt and provenance.json; further references become target.2.txt and so on.

    The folder appears only once complete. Without parts, the files are empty.

    Args:
        parts: the sources of the split.
        folder: where the files go.
        references: files with further references, one line per pair.
        sample: pairs to keep, drawn at random; None keeps all.

    Raises:
        FileNotFoundError: if a reference file is missing.
        ValueError: if a part has no pairs or the wrong hash, there are fewer pairs than `sample`, or a
            reference file does not have one line per pair; also any error from reading the pairs.
    """
    with atomic_path(folder) as temporary:
        temporary.mkdir()
        sides = temporary / "source.txt", temporary / "target.txt"
        with (
            sides[0].open("w", encoding="utf-8", newline="\n") as source,
            sides[1].open("w", encoding="utf-8", newline="\n") as target,
        ):
            sources = [write_part(part, source, target) for part in parts]
        lines = sum(part["lines"] for part in sources)
        if sample is not None:
            draw(sides, lines, sample)
            lines = sample
        provenance: dict[str, Any] = {"lines": lines, "sources": sources}
        for number, path in enumerate(references, start=2):
            write_references(path, lines, temporary / f"target.{number}.txt")
        if references:
            provenance["references"] = used_files(references)
        text = json.dumps(provenance, ensure_ascii=False, indent=2, sort_keys=True)
        (temporary / "provenance.json").write_text(text + "\n", encoding="utf-8", newline="\n")


def draw(paths: Sequence[Path], lines: int, sample: int) -> None:
    """Keep this many lines of parallel files, drawn at random, in their order; the same ones every time.

    Args:
        paths: files whose lines belong together.
        lines: that each of them has.
        sample: lines to keep.

    Raises:
        ValueError: if there are fewer lines than that.
    """
    if sample > lines:
        raise ValueError(
            f"download.train_pairs: expected at most {lines:,}, the pairs of download.train, found "
            f"{sample:,}. null takes all of them."
        )
    for path in paths:
        dice, left = random.Random(1), sample
        drawn = path.with_suffix(".drawn")
        with (
            path.open(encoding="utf-8", newline="\n") as old,
            drawn.open("w", encoding="utf-8", newline="\n") as new,
        ):
            for number, line in enumerate(old):
                # Selection sampling: all sets of lines are equally likely (Knuth, volume 2, algorithm S).
                if dice.random() * (lines - number) < left:
                    new.write(line)
                    left -= 1
        drawn.replace(path)


def write_references(path: Path, pairs: int, out: Path) -> None:
    """Write the lines of a file, one for each pair.

    Raises:
        FileNotFoundError: if the file is missing.
        ValueError: if it does not have one line per pair.
    """
    if not path.is_file():
        raise FileNotFoundError(
            f"{path} does not exist or is not a file. Expected a text file, plain or .gz/.bz2/.xz/.zst: "
            "check download.references in params.yaml, whose names are looked up in download.folder."
        )
    lines = [clean(line) for line in read_lines(path)]
    if len(lines) != pairs:
        raise ValueError(
            f"{path}: expected {counted(pairs, 'line')}, one reference per test pair, found {len(lines):,}. "
            "Is it the right file for download.references?"
        )
    write_lines(out, lines)


def write_part(part: Part, source: IO[str], target: IO[str]) -> dict[str, Any]:
    """Append a part's pairs to the two files; return its provenance with the number of lines and their hash.

    Raises:
        ValueError: as `write_split`.
    """
    lines, digest = 0, hashlib.sha256()
    for pair in with_progress(part.pairs, part.name, "pairs"):
        digest.update(f"{pair.source}\t{pair.target}\n".encode())
        source.write(pair.source + "\n")
        target.write(pair.target + "\n")
        lines += 1
    if lines == 0:
        raise ValueError(f"{part.name} has no sentence pairs. Expected at least one: is it the right file?")
    found = digest.hexdigest()
    if part.expected_sha256 not in (None, found):
        raise ValueError(
            f"{part.name}: expected sha256 {part.expected_sha256} of its pairs, found {found} of "
            f"{counted(lines, 'pair')}. The data has changed, or was damaged in transfer: delete it from the "
            "downloads and fetch it again, or correct sha256 in params.yaml."
        )
    return {**part.provenance, "lines": lines, "pairs_sha256": found}
