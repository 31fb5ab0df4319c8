"""Compares word aligners on any parallel text: seconds, memory, agreement, alignment error rate.

    python -m benchmarks.align --source FILE --target FILE [--gold FILE] [--iterations 5] [--rounds 5]

The files hold whitespace-separated words; line i of --gold holds the true links of line i, such as
0-0 1-2. The aligners take turns, each in its own process: the built-in one;
systran-align if it is installed; fast_align and atools if they are on PATH. Before the first
round, the built-in one runs once so that numba compiles it. Times and memory are medians over rounds.
"""

import argparse
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd

from benchmarks._aligners import PairLinks, available
from convs2s.base.files import read_lines
from convs2s.text.alignment.backends import parse_links
from convs2s.text.alignment.link_counting import build_dictionary
from convs2s.text.alignment.word_ids import number_words, pack_links


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


def measure(name: str, arguments: argparse.Namespace, out: Path) -> dict[str, float]:
    """Run one aligner in its own process; return its wall and CPU seconds and peak memory in MB."""
    command = [
        sys.executable, "-m", "benchmarks._aligners", name, f"--source={arguments.source}",
        f"--target={arguments.target}", f"--iterations={arguments.iterations}", f"--out={out}",
    ]  # fmt: skip
    begin = time.perf_counter()
    process = subprocess.Popen(command)
    _, status, usage = os.wait4(process.pid, 0)  # includes the usage of its children
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise RuntimeError(f"{name} exited with status {process.returncode}; see its messages above.")
    return {
        "seconds": time.perf_counter() - begin,
        "CPU seconds": usage.ru_utime + usage.ru_stime,
        "MB": usage.ru_maxrss / 1024,
    }


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
    aligners: Sequence[str], arguments: argparse.Namespace, folder: Path
) -> dict[str, dict[str, float]]:
    """Return, by aligner, how well its links agree with those of the built-in one and with true links."""
    corpus, words = number_words(arguments.source, arguments.target, folder)
    dictionaries = {}
    for name in aligners:
        entries = build_dictionary(corpus, words, pack_links(read_links(folder / name)))
        dictionaries[name] = {entry.source: entry.target for entry in entries}
    rows: dict[str, dict[str, float]] = {}
    for name in aligners:
        error_rate = alignment_error_rate(read_links(folder / name), read_links(folder / "builtin"))
        equal = equal_entries(dictionaries[name], dictionaries["builtin"], arguments.source)
        rows[name] = {"F1 with builtin": 1.0 - error_rate, "equal entries": equal}
        if arguments.gold:
            rows[name]["AER"] = alignment_error_rate(read_links(folder / name), read_links(arguments.gold))
    return rows


def main(options: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--target", type=Path, required=True)
    parser.add_argument("--gold", type=Path, help="true links")
    parser.add_argument("--iterations", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args(options)
    with TemporaryDirectory() as name:
        folder = Path(name)
        aligners = available()
        measure("builtin", arguments, folder / "builtin")  # compiles
        costs = pd.DataFrame(
            {"aligner": aligner, **measure(aligner, arguments, folder / aligner)}
            for _ in range(arguments.rounds)
            for aligner in aligners
        )
        agreement = compare(aligners, arguments, folder)
    medians = costs.groupby("aligner", sort=False).median().rename_axis(None)
    print(medians.join(pd.DataFrame(agreement).T).round(3).to_string())


if __name__ == "__main__":
    main()
