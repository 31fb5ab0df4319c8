"""Compares word aligners on any parallel text: seconds, memory, agreement, alignment error rate.

    python -m benchmarks.align --source FILE --target FILE [--gold FILE] [--iterations 5] [--rounds 5]

The files hold whitespace-separated words; line i of --gold holds the true links of line i, such as
0-0 1-2. The aligners take turns, each in its own process: the built-in one; systran-align if it is
installed; fast_align and atools if they are on PATH. Times and memory are medians over rounds.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks._aligners import PairLinks, available
from benchmarks.harness import PATH, ProcessCost, Report, add_common, in_turns, program, run_process
from convs2s.base.files import read_lines
from convs2s.text.alignment.backends import parse_links
from convs2s.text.alignment.link_counting import build_dictionary
from convs2s.text.alignment.word_ids import number_words, pack_links

COLUMNS = ("aligner", "seconds", "CPU seconds", "MB", "F1 with builtin", "equal entries")


def alignment_error_rate(hypotheses: Iterable[PairLinks], references: Iterable[PairLinks]) -> float:
    """Return 1 - 2 |A and S| / (|A| + |S|) over all pairs (Och and Ney, 2003), for links S that are all sure.

    Args:
        hypotheses: for each pair, the links A of an aligner, as (source, target) positions.
        references: for each pair, the true links S.
    """
    common = total = 0
    for hypothesis, reference in zip(hypotheses, references, strict=True):
        common += len(set(hypothesis) & set(reference))
        total += len(set(hypothesis)) + len(set(reference))
    return 1.0 - 2.0 * common / total if total else 0.0


def align(name: str, options: argparse.Namespace, out: Path) -> ProcessCost:
    """Run one aligner in its own process; return its cost."""
    files = [f"--source={options.source}", f"--target={options.target}", f"--out={out}"]
    return run_process(
        [sys.executable, "-m", "benchmarks._aligners", name, f"--iterations={options.iterations}", *files]
    )


def read_links(path: Path) -> Iterator[PairLinks]:
    """Yield the links in each line of a file."""
    return map(parse_links, read_lines(path))


def equal_entries(entries: dict[str, str], wanted: dict[str, str], source: Path) -> float:
    """Return the share of words, weighted by frequency, that have the same entry in both dictionaries."""
    frequency = Counter(word for line in read_lines(source) for word in line.split())
    linked = entries.keys() | wanted.keys()
    equal = sum(frequency[word] for word in linked if entries.get(word) == wanted.get(word))
    return equal / sum(frequency[word] for word in linked)


def compare(
    aligners: Sequence[str], options: argparse.Namespace, folder: Path
) -> dict[str, dict[str, float]]:
    """Return, by aligner, how well its links agree with those of the built-in one and with true links."""
    corpus, words = number_words(options.source, options.target, folder)
    dictionaries = {}
    for name in aligners:
        entries = build_dictionary(corpus, words, pack_links(read_links(folder / name)))
        dictionaries[name] = {entry.source: entry.target for entry in entries}
    rows: dict[str, dict[str, float]] = {}
    for name in aligners:
        error_rate = alignment_error_rate(read_links(folder / name), read_links(folder / "builtin"))
        equal = equal_entries(dictionaries[name], dictionaries["builtin"], options.source)
        rows[name] = {"F1 with builtin": 1.0 - error_rate, "equal entries": equal}
        if options.gold:
            rows[name]["AER"] = alignment_error_rate(read_links(folder / name), read_links(options.gold))
    return rows


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the text and its true links."""
    for side in ("source", "target"):
        parser.add_argument(f"--{side}", **PATH, help="whitespace-separated words")
    parser.add_argument("--gold", type=Path, help="true links")
    parser.add_argument("--iterations", type=int, default=5)
    add_common(parser, "rounds")


def measure(options: argparse.Namespace, report: Report) -> None:
    """Measure all aligners, and compare their links."""
    report.table([*COLUMNS, *(["AER"] if options.gold else [])])
    with TemporaryDirectory() as name:
        folder = Path(name)
        ways = {aligner: partial(align, aligner, options, folder / aligner) for aligner in available()}
        costs = in_turns(ways, options.rounds)
        agreement = compare(list(ways), options, folder)
    for aligner, rounds in costs.items():
        spreads = ProcessCost.spreads(rounds)
        medians = [values["median"] for values in spreads.values()]
        report.add(aligner, *medians, *agreement[aligner].values(),
                   aligner=aligner, **spreads, **agreement[aligner])  # fmt: skip


main = program(__doc__, add_options, measure, packages=["numba", "systran-align"])

if __name__ == "__main__":
    main()
