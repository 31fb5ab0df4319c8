"""Translations as lines, in the requested form; the output, and a progress bar."""

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

from convs2s.commands.translate_input import is_file, lines_left
from convs2s.text.corpus.files import atomic_path

if TYPE_CHECKING:
    from convs2s.decode.forced_decoding import GivenScore
    from convs2s.package.translator import Translation


def translation_lines(
    ranked: Sequence["Translation"], number: int, options: argparse.Namespace
) -> Iterator[str]:
    """Yield the lines for a sentence: its translation, after its score if requested, or its n-best list.

    n-best lists are in the format of Moses and Marian: sentence ||| text ||| score, with sentences from 0.
    """
    if options.n_best:
        for translation in ranked:
            yield f"{number} ||| {translation.text} ||| {translation.score:.4f}"
    elif options.scores:
        yield f"{ranked[0].score:.4f}\t{ranked[0].text}"
    else:
        yield ranked[0].text


def score_line(given: "GivenScore") -> str:
    """Return the line for a given translation: log-likelihood and number of tokens, both with EOS."""
    return f"{given.log_likelihood:.4f}\t{given.tokens}"


@contextmanager
def opened_output(path: Path | None) -> Iterator[IO[bytes]]:
    """Open a file that appears only once complete, or take standard output.

    Raises:
        IsADirectoryError: if the path is a folder.
    """
    if path is None:
        yield sys.stdout.buffer
        return
    if path.is_dir():
        raise IsADirectoryError(f"--output {path} is a folder. Wanted a file, such as {path / 'out.txt'}.")
    with atomic_path(path) as temporary, temporary.open("wb") as stream:
        yield stream


@contextmanager
def progress(source: IO[bytes], output: Path | None) -> Iterator[Callable[[int], object]]:
    """Show a bar on standard error while a file is translated, if that is a terminal and the output is not.

    Yields:
        A function to call with the number of sentences just finished.
    """
    if not (sys.stderr.isatty() and is_file(source)) or (output is None and sys.stdout.isatty()):
        yield lambda _: None
        return
    from tqdm import tqdm  # noqa: PLC0415  # takes time, and is rarely needed

    # Long sentences come first in each chunk, so recent speed misleads; smoothing=0 shows the average.
    with tqdm(
        total=lines_left(source), desc="translate", unit=" sentences", smoothing=0, dynamic_ncols=True
    ) as bar:
        yield bar.update
