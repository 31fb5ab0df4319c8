"""The word aligners that `align` compares; each runs in its own process and imports only what it needs."""

import argparse
import importlib
import importlib.util
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from convs2s.base.files import read_pairs, write_lines
from convs2s.text.alignment.backends import BACKENDS
from convs2s.text.alignment.word_ids import number_words

PairLinks = list[tuple[int, int]]
"""Links of a sentence pair, as positions from 0."""


def align_text(
    backend: str, source: Path, target: Path, iterations: int, folder: Path
) -> Iterator[PairLinks]:
    """Yield the links of a backend of ours, for two files of words."""
    corpus, _ = number_words(source, target, folder)
    for links in BACKENDS[backend](corpus, iterations, folder):
        yield from links.lists()


def systran(source: Path, target: Path, iterations: int, folder: Path) -> Iterator[PairLinks]:
    """Yield the links of systran-align, without its pruning; pairs with an empty side have none."""
    module = importlib.import_module("systran_align")
    text = folder / "text"
    forward, backward = str(folder / "forward"), str(folder / "backward")
    pairs = ((line.split(), other.split()) for line, other in read_pairs(source, target))
    write_lines(text, (" ".join([*left, "|||", *right]) for left, right in pairs if left and right))
    module.generate_alignment_probabilities(
        str(text), forward, backward, iterations=iterations, favor_diagonal=True, beam_threshold=-100.0,
        optimize_tension=True, variational_bayes=True,
    )  # fmt: skip
    aligner = module.Aligner(forward, backward)
    for line, other in read_pairs(source, target):
        left, right = line.split(), other.split()
        if left and right:
            yield [(i, j) for i, j in aligner.align(left, right)["alignments"]]
        else:
            yield []


ALIGNERS = {name: partial(align_text, name) for name in BACKENDS} | {"systran-align": systran}


def available() -> list[str]:
    """Return the aligners installed on this machine."""
    installed = {
        "systran-align": importlib.util.find_spec("systran_align") is not None,
        "fast_align": bool(shutil.which("fast_align") and shutil.which("atools")),
    }
    return [name for name in ALIGNERS if installed.get(name, True)]


def main() -> None:
    """Align with the aligner of this name; write its links to --out."""
    parser = argparse.ArgumentParser()
    parser.add_argument("name", choices=ALIGNERS)
    for option in ("--source", "--target", "--out"):
        parser.add_argument(option, type=Path, required=True)
    parser.add_argument("--iterations", type=int, required=True)
    arguments = parser.parse_args()
    with TemporaryDirectory(dir=arguments.out.parent) as folder:
        links = ALIGNERS[arguments.name](
            arguments.source, arguments.target, arguments.iterations, Path(folder)
        )
        write_lines(arguments.out, (" ".join(f"{i}-{j}" for i, j in line) for line in links))


if __name__ == "__main__":
    main()
