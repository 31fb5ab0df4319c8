"""Word alignment by the programs `fast_align` and `atools` (https://github.com/clab/fast_align)."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from convs2s.text.corpus.files import read_lines, read_pairs, temporary_folder, write_lines
from convs2s.text.corpus.flat_ids import FlatIds
from convs2s.text.counted import counted

SEPARATOR = "|||"
"""Separates the two sides in fast_align's input, so it must not occur as a word."""
STAND_IN = "¦¦¦"
"""Replaces such a word; the output has only positions."""


def align_with_programs(
    source: Path, target: Path, iterations: int, folder: Path
) -> Iterator[list[tuple[int, int]]]:
    """Yield the links of each sentence pair, like `fast_align.align`, but computed by the programs.

    Args:
        source: whitespace-separated words; line i translates line i of `target`.
        target: see source.
        iterations: of fast_align.
        folder: where a temporary folder is created, for copies of both files and both alignments.

    Raises:
        FileNotFoundError: if a program is not on PATH.
        ChildProcessError: if a program fails, or prints a different number of lines than it was given.
        ValueError: if atools prints anything other than links within the sentences, or as `read_pairs`.
    """
    fast_align, atools = find_program("fast_align"), find_program("atools")
    with temporary_folder(folder) as name:
        work = Path(name)
        text, forward, backward, both = (work / part for part in ("text", "forward", "backward", "both"))
        count = write_lines(text, fast_align_lines(source, target))
        if count:  # fast_align fails on an empty file
            options = ["-i", str(text), "-d", "-o", "-v", "-I", str(iterations)]
            execute([fast_align, *options], forward)
            execute([fast_align, *options, "-r"], backward)
            execute([atools, "-c", "grow-diag-final-and", "-i", str(forward), "-j", str(backward)], both)
        else:
            both.touch()
        printed = sum(1 for _ in read_lines(both))
        if printed != count:
            raise ChildProcessError(
                f"expected a line from atools for each of {counted(count, 'sentence pair')}, found "
                f"{counted(printed, 'line')}. Are the programs damaged? Rebuild them, or choose "
                "align.backend: builtin in params.yaml."
            )
        alignments = read_lines(both)
        for left, right in read_pairs(source, target):
            sizes = len(left.split()), len(right.split())
            yield parse_links(next(alignments), sizes) if all(sizes) else []


def align_ids_with_programs(
    source: FlatIds, target: FlatIds, iterations: int, folder: Path
) -> Iterator[list[tuple[int, int]]]:
    """Yield the links of each pair of encoded sentences, without EOS; the programs read them as text."""
    with temporary_folder(folder) as name:
        texts = Path(name) / "source.txt", Path(name) / "target.txt"
        for text, side in zip(texts, (source, target), strict=True):
            write_ids(text, side)
        yield from align_with_programs(*texts, iterations, folder)


def write_ids(path: Path, corpus: FlatIds) -> None:
    """Write a side of an encoded corpus as text: ids as words, without EOS."""
    write_lines(path, (" ".join(map(str, corpus[i][:-1].tolist())) for i in range(len(corpus))))


def fast_align_lines(source: Path, target: Path) -> Iterator[str]:
    """Yield 'source ||| target' for each pair that has words on both sides; fast_align fails on others."""
    for pair in read_pairs(source, target):
        left, right = (
            " ".join(STAND_IN if word == SEPARATOR else word for word in line.split()) for line in pair
        )
        if left and right:
            yield f"{left} {SEPARATOR} {right}"


def find_program(name: str) -> str:
    """Return the path of a program.

    Raises:
        FileNotFoundError: if it is not on PATH.
    """
    found = shutil.which(name)
    if found is None:
        raise FileNotFoundError(
            f"align.backend is fast_align, but the program {name} is not on PATH. Build it from "
            "https://github.com/clab/fast_align (cmake, make) and add its folder to PATH, or choose "
            "align.backend: builtin in params.yaml, which needs no other program."
        )
    return found


def execute(command: list[str], output: Path) -> None:
    """Run a program, writing its output to a file; its messages appear on stderr.

    Raises:
        ChildProcessError: if it fails.
    """
    with output.open("wb") as stream:
        code = subprocess.run(command, stdout=stream, check=False).returncode
    if code != 0:
        raise ChildProcessError(
            f"'{' '.join(command)}' ended with status {code}, expected 0. Its messages above say why; "
            "or choose align.backend: builtin in params.yaml."
        )


def parse_links(line: str, sizes: tuple[int, int]) -> list[tuple[int, int]]:
    """Return the links in a line such as '0-0 1-2' (source-target positions from 0), sorted.

    Args:
        line: from fast_align, atools, or a file of true alignments.
        sizes: words in the source and the target sentence.

    Raises:
        ValueError: if an item is not a link, or points outside the sentences.
    """
    links = []
    for link in line.split():
        i, dash, j = link.partition("-")
        if not (dash and i.isdecimal() and j.isdecimal() and int(i) < sizes[0] and int(j) < sizes[1]):
            raise ValueError(
                f"expected SOURCE-TARGET positions from 0 in {sizes[0]} source and {sizes[1]} target words, "
                f"found the link {link!r}. Is this the alignment of another text?"
            )
        links.append((int(i), int(j)))
    return sorted(links)
