"""Compares word aligners on any parallel text: seconds, memory, agreement, alignment error rate.

    python -m benchmarks.alignment --source FILE --target FILE [--gold FILE] [--iterations 5]

The files hold whitespace-separated words; line i of --gold holds the true links of line i, such as
0-0 1-2. Each aligner runs in its own process: the built-in one, systran-align if it is installed,
fast_align and atools if they are on PATH. The built-in one, as it is and exactly as fast_align, runs
twice, since numba compiles it the first time.
"""

import argparse
import importlib
import importlib.util
import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd

from convs2s.score.alignment_error_rate import alignment_error_rate
from convs2s.text.alignment.dictionary_counting import build_dictionary
from convs2s.text.alignment.fast_align import align
from convs2s.text.alignment.fast_align_programs import align_with_programs, fast_align_lines, parse_links
from convs2s.text.corpus.files import read_lines, read_pairs, write_lines

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
    """Return the aligners that this machine has."""
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


def measure(name: str, arguments: argparse.Namespace, out: Path) -> dict[str, float]:
    """Run one aligner in its own process; return its wall and CPU seconds and peak memory in MB."""
    command = [sys.executable, "-m", "benchmarks.alignment", *sys.argv[1:], "--only", name, "--out", str(out)]
    begin = time.perf_counter()
    process = subprocess.Popen(command)
    _, status, usage = os.wait4(process.pid, 0)  # includes the usage of its children
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise RuntimeError(f"{name} ended with status {process.returncode}; see its messages above.")
    return {
        "seconds": time.perf_counter() - begin,
        "CPU seconds": usage.ru_utime + usage.ru_stime,
        "MB": usage.ru_maxrss / 1024,
    }


def links_of(path: Path, arguments: argparse.Namespace) -> Iterator[Links]:
    """Yield the links in a file."""
    pairs = read_pairs(arguments.source, arguments.target)
    for line, (source, target) in zip(read_lines(path), pairs, strict=True):
        yield parse_links(line, (len(source.split()), len(target.split())))


def entries(path: Path, arguments: argparse.Namespace) -> dict[str, str]:
    """Return the dictionary that a file of links makes."""
    pairs = read_pairs(arguments.source, arguments.target)
    return {entry.source: entry.target for entry in build_dictionary(pairs, links_of(path, arguments))}


def equal_entries(one: dict[str, str], other: dict[str, str], source: Path) -> float:
    """Return the share of words, weighted by frequency, that have the same entry in both."""
    frequency = Counter(word for line in read_lines(source) for word in line.split())
    linked = one.keys() | other.keys()
    equal = sum(frequency[word] for word in linked if one.get(word) == other.get(word))
    return equal / sum(frequency[word] for word in linked)


def compare(arguments: argparse.Namespace, folder: Path) -> pd.DataFrame:
    """Return a row for each aligner."""
    rows = {}
    for name in ("builtin", "exact"):
        measure(name, arguments, folder / name)  # compiles
    for name in available():
        rows[name] = measure(name, arguments, folder / name)
        for ours in ("builtin", "exact"):
            both = (links_of(folder / path, arguments) for path in (name, ours))
            rows[name][f"F1 with {ours}"] = 1.0 - alignment_error_rate(*both)
        one, other = (entries(folder / path, arguments) for path in (name, "builtin"))
        rows[name]["equal entries"] = equal_entries(one, other, arguments.source)
        if arguments.gold:
            truth = links_of(arguments.gold, arguments)
            rows[name]["AER"] = alignment_error_rate(links_of(folder / name, arguments), truth)
    return pd.DataFrame.from_dict(rows, orient="index")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--target", type=Path, required=True)
    parser.add_argument("--gold", type=Path, help="true links")
    parser.add_argument("--iterations", type=int, default=5)
    parser.add_argument("--only", choices=ALIGNERS, help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.only:
        run(arguments.only, arguments, arguments.out)
        return
    with TemporaryDirectory() as folder:
        table = compare(arguments, Path(folder))
    print(table.round(3).to_string())


if __name__ == "__main__":
    main()
