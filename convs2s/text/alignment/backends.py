"""The word aligners that `align.backend` names, for files of words and for encoded sentences."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from convs2s.text.alignment.fast_align import Links, align
from convs2s.text.alignment.fast_align_programs import align_with_programs
from convs2s.text.corpus.files import SIDES, temporary_folder, write_lines
from convs2s.text.corpus.flat_ids import FlatIds

BACKENDS: dict[str, Callable[[Path, Path, int, Path], Iterator[Links]]] = {
    "builtin": align,
    "exact": partial(align, exact=True),
    "fast_align": align_with_programs,
}
"""Functions of two files, the number of iterations, and a folder for temporary files."""


def align_ids(
    backend: str, source: FlatIds, target: FlatIds, iterations: int, folder: Path
) -> Iterator[Links]:
    """Yield the links of each pair of encoded sentences, whose ids are aligned as if they were words.

    Args:
        backend: one of `BACKENDS`; see there for the other arguments.
        source: sentences that end with EOS, which is not aligned; likewise `target`.
    """
    with temporary_folder(folder) as work:
        files = [Path(work) / side for side in SIDES]
        for file, corpus in zip(files, (source, target), strict=True):
            write_lines(file, (" ".join(map(str, corpus[i][:-1].tolist())) for i in range(len(corpus))))
        yield from BACKENDS[backend](files[0], files[1], iterations, Path(work))
