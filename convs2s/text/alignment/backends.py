"""The word aligners that `align.backend` names: ours, and the authors' programs `fast_align` and `atools`.

The programs are at https://github.com/clab/fast_align.
"""

import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

from convs2s.base.files import read_lines, temporary_folder, write_lines
from convs2s.text.alignment.fast_align import align
from convs2s.text.alignment.word_ids import Corpus, Links, pack_links


def align_with_programs(corpus: Corpus, iterations: int, folder: Path) -> Iterator[Links]:
    """Yield the links of all sentence pairs, like `fast_align.align`, but computed by the programs.

    Args:
        folder: where a temporary folder is created, for a text of word ids and both alignments.

    Raises:
        FileNotFoundError: if a program is not on PATH.
        ChildProcessError: if a program fails.
    """
    for program in ("fast_align", "atools"):
        if shutil.which(program) is None:
            raise FileNotFoundError(
                f"align.backend is fast_align, but the program {program} is not on PATH. Build it from "
                "https://github.com/clab/fast_align (cmake, make) and add its folder to PATH, or choose "
                "align.backend: builtin in params.yaml, which gives the same links without it."
            )
    # fast_align fails on an empty file, and on a pair without words.
    lines = (
        f"{' '.join(map(str, source))} ||| {' '.join(map(str, target))}"
        for source, target in corpus.sentences()
        if source
    )
    with temporary_folder(folder) as name:
        text, forward, backward, both = (Path(name, part) for part in ("text", "forward", "backward", "both"))
        alignments: Iterator[str] = iter(())
        if write_lines(text, lines):
            options = ["-i", str(text), "-d", "-o", "-v", "-I", str(iterations)]
            run_program(["fast_align", *options], forward)
            run_program(["fast_align", *options, "-r"], backward)
            run_program(
                ["atools", "-c", "grow-diag-final-and", "-i", str(forward), "-j", str(backward)], both
            )
            alignments = read_lines(both)
        yield from pack_links(
            parse_links(next(alignments)) if source else [] for source, _ in corpus.sentences()
        )


def run_program(command: list[str], output: Path) -> None:
    """Run a program, writing its output to a file; its messages appear on stderr."""
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


BACKENDS: dict[str, Callable[[Corpus, int, Path], Iterator[Links]]] = {
    "builtin": align,
    "fast_align": align_with_programs,
}
"""Functions of a corpus, the number of iterations, and a folder for temporary files."""
