"""The word aligners that `align` compares; each runs in its own process and imports only what it needs."""

import argparse
import importlib
import importlib.util
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from convs2s.text.alignment.fast_align import align
from convs2s.text.alignment.fast_align_programs import align_with_programs, fast_align_lines
from convs2s.text.corpus.files import read_pairs, write_lines

Links = list[tuple[int, int]]


def systran(source: Path, target: Path, iterations: int, folder: Path) -> Iterator[Links]:
    """Yield the links of systran-align, without its pruning; pairs with an empty side have none."""
    module = importlib.import_module("systran_align")
    text, tables = folder / "text", (str(folder / "forward"), str(folder / "backward"))
    write_lines(text, fast_align_lines(source, target))
    module.generate_alignment_probabilities(
        str(text), *tables, iterations=iterations, favor_diagonal=True, beam_threshold=-100.0,
        optimize_tension=True, variational_bayes=True,
    )  # fmt: skip
    aligner = module.Aligner(*tables)
    for line, other in read_pairs(source, target):
        words = line.split(), other.split()
        yield [(i, j) for i, j in aligner.align(*words)["alignments"]] if all(words) else []


ALIGNERS: dict[str, Callable[[Path, Path, int, Path], Iterator[Links]]] = {
    "builtin": align,
    "exact": partial(align, exact=True),
    "systran-align": systran,
    "fast_align": align_with_programs,
}


def available() -> list[str]:
    """Return the aligners installed on this machine."""
    has = {
        "builtin": True,
        "exact": True,
        "systran-align": importlib.util.find_spec("systran_align") is not None,
        "fast_align": bool(shutil.which("fast_align") and shutil.which("atools")),
    }
    return [name for name in ALIGNERS if has[name]]


def run(name: str, arguments: argparse.Namespace, out: Path) -> None:
    """Align with one aligner; write its links to `out`."""
    with TemporaryDirectory(dir=out.parent) as folder:
        links = ALIGNERS[name](arguments.source, arguments.target, arguments.iterations, Path(folder))
        write_lines(out, (" ".join(f"{i}-{j}" for i, j in line) for line in links))


def main() -> None:
    """Align with the aligner of this name."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks._aligners")
    parser.add_argument("name", choices=ALIGNERS)
    for option in ("--source", "--target", "--out"):
        parser.add_argument(option, type=Path, required=True)
    parser.add_argument("--iterations", type=int, required=True)
    arguments = parser.parse_args()
    run(arguments.name, arguments, arguments.out)


if __name__ == "__main__":
    main()
