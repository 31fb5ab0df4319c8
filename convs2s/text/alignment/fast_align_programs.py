"""Word alignment by the programs `fast_align` and `atools` (https://github.com/clab/fast_align)."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from convs2s.base.files import read_lines, temporary_folder, write_lines
from convs2s.text.alignment.word_ids import Corpus, Links, pack_links


def align_with_programs(corpus: Corpus, iterations: int, folder: Path) -> Iterator[Links]:
    """Yield the links of all sentence pairs, like `fast_align.align`, but computed by the programs.

    Args:
        iterations: of fast_align.
        folder: where a temporary folder is created, for a text of word ids and both alignments.

    Raises:
        FileNotFoundError: if a program is not on PATH.
        ChildProcessError: if a program fails.
    """
    fast_align, atools = find_program("fast_align"), find_program("atools")
    with temporary_folder(folder) as name:
        text, forward, backward, both = (Path(name, part) for part in ("text", "forward", "backward", "both"))
        if write_lines(text, fast_align_lines(corpus)):  # fast_align fails on an empty file
            options = ["-i", str(text), "-d", "-o", "-v", "-I", str(iterations)]
            execute([fast_align, *options], forward)
            execute([fast_align, *options, "-r"], backward)
            execute([atools, "-c", "grow-diag-final-and", "-i", str(forward), "-j", str(backward)], both)
            alignments = read_lines(both)
        yield from pack_links(
            parse_links(next(alignments)) if len(source) else [] for source, _ in corpus.sentences()
        )


def fast_align_lines(corpus: Corpus) -> Iterator[str]:
    """Yield '0 1 ||| 0 2', a pair's word ids, for each pair with words; fast_align fails on others."""
    for source, target in corpus.sentences():
        if len(source):
            yield f"{' '.join(map(str, source))} ||| {' '.join(map(str, target))}"


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
            "align.backend: exact in params.yaml, which gives the same links without it."
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
            f"'{' '.join(command)}' ended with status {code}; its messages above say why."
        )


def parse_links(line: str) -> list[tuple[int, int]]:
    """Return the links in a line such as '0-0 1-2' (source-target positions from 0), sorted."""
    links = (link.split("-") for link in line.split())
    return sorted((int(i), int(j)) for i, j in links)
