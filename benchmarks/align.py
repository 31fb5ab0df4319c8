"""Compares word aligners on any parallel text: seconds, memory, agreement, alignment error rate.

    python -m benchmarks.align --source FILE --target FILE [--gold FILE] [--iterations 5] [--rounds 5]

The files hold whitespace-separated words; line i of --gold holds the true links of line i, such as
0-0 1-2. The aligners take turns, each in its own process: the built-in one, by default and exactly
like fast_align; systran-align if it is installed; fast_align and atools if they are on PATH. Before the first
round, the built-in ones run once so that numba compiles them. Times and memory are medians over rounds;
--json FILE also has minima and maxima.
"""

import argparse
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd

from benchmarks._aligners import Links, available
from convs2s.text.alignment.fast_align_programs import parse_links
from convs2s.text.alignment.link_counting import build_dictionary
from convs2s.text.corpus.files import read_lines, read_pairs


def alignment_error_rate(hypotheses: Iterable[Links], references: Iterable[Links]) -> float:
    """Return 1 - 2 |A and S| / (|A| + |S|) over all pairs (Och and Ney, 2003), for links S that are all sure.

    Args:
        hypotheses: for each pair, the links A that were found, as (source, target) positions.
        references: for each pair, the true links S.

    Raises:
        ValueError: if the two differ in their number of pairs.
    """
    common, total = 0, 0
    for found, true in zip(hypotheses, references, strict=True):
        common += len(set(found) & set(true))
        total += len(set(found)) + len(set(true))
    return 1.0 - 2.0 * common / total if total else 0.0


def measure(name: str, arguments: argparse.Namespace, out: Path) -> dict[str, float]:
    """Run one aligner in its own process; return its wall and CPU seconds and peak memory in MB."""
    options = {name: getattr(arguments, name) for name in ("source", "target", "iterations")} | {"out": out}
    given = [f"--{option}={value}" for option, value in options.items()]
    command = [sys.executable, "-m", "benchmarks._aligners", name, *given]
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


def links_of(path: Path, arguments: argparse.Namespace) -> Iterator[Links]:
    """Yield the links in a file."""
    pairs = read_pairs(arguments.source, arguments.target)
    for line, (source, target) in zip(read_lines(path), pairs, strict=True):
        yield parse_links(line, (len(source.split()), len(target.split())))


def entries(path: Path, arguments: argparse.Namespace) -> dict[str, str]:
    """Return the dictionary built from a file of links."""
    pairs = read_pairs(arguments.source, arguments.target)
    return {entry.source: entry.target for entry in build_dictionary(pairs, links_of(path, arguments))}


def equal_entries(one: dict[str, str], other: dict[str, str], source: Path) -> float:
    """Return the share of words, weighted by frequency, that have the same entry in both."""
    frequency = Counter(word for line in read_lines(source) for word in line.split())
    linked = one.keys() | other.keys()
    equal = sum(frequency[word] for word in linked if one.get(word) == other.get(word))
    return equal / sum(frequency[word] for word in linked)


def costs(arguments: argparse.Namespace, folder: Path) -> dict[str, list[dict[str, float]]]:
    """Run the aligners in turns; return the costs of each one's rounds; links go to the folder."""
    for name in ("builtin", "exact"):
        measure(name, arguments, folder / name)  # compiles
    found: dict[str, list[dict[str, float]]] = {name: [] for name in available()}
    for _ in range(arguments.rounds):
        for name, rounds in found.items():
            rounds.append(measure(name, arguments, folder / name))
    return found


def spreads(rounds: Sequence[Mapping[str, float]]) -> dict[str, Any]:
    """Return the spread of each measurement over the rounds."""
    # Only after all measurements: this imports PyTorch, whose memory would count for each aligner because
    # a new process starts as a copy of this one.
    from benchmarks.machine import spread  # noqa: PLC0415

    return {key: spread([one[key] for one in rounds]) for key in rounds[0]}


def spreads_as_json(rounds: Sequence[Mapping[str, float]]) -> dict[str, dict[str, float]]:
    """Return the spread of each measurement, for JSON."""
    return {key: asdict(one) for key, one in spreads(rounds).items()}


def compare(
    found: Mapping[str, Sequence[Mapping[str, float]]], arguments: argparse.Namespace, folder: Path
) -> pd.DataFrame:
    """Return a row for each aligner."""
    rows = {}
    for name, rounds in found.items():
        rows[name] = {key: value.median for key, value in spreads(rounds).items()}
        for ours in ("builtin", "exact"):
            both = (links_of(folder / path, arguments) for path in (name, ours))
            rows[name][f"F1 with {ours}"] = 1.0 - alignment_error_rate(*both)
        one, other = (entries(folder / path, arguments) for path in (name, "builtin"))
        rows[name]["equal entries"] = equal_entries(one, other, arguments.source)
        if arguments.gold:
            truth = links_of(arguments.gold, arguments)
            rows[name]["AER"] = alignment_error_rate(links_of(folder / name, arguments), truth)
    return pd.DataFrame.from_dict(rows, orient="index")


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--target", type=Path, required=True)
    parser.add_argument("--gold", type=Path, help="true links")
    parser.add_argument("--iterations", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    return parser.parse_args(arguments)


def main(options: Sequence[str] | None = None) -> None:
    """Print the table."""
    arguments = parse(options)
    with TemporaryDirectory() as folder:
        found = costs(arguments, Path(folder))
        compared = compare(found, arguments, Path(folder))
    print(compared.round(3).to_string())
    if arguments.json:
        from benchmarks.machine import machine, write_report  # noqa: PLC0415  # see `spreads`

        rows = compared.reset_index(names="aligner").to_dict(orient="records")
        results = [
            {**{str(key): value for key, value in row.items()}, "rounds": spreads_as_json(rounds)}
            for row, rounds in zip(rows, found.values(), strict=True)
        ]
        write_report(arguments.json, {"machine": machine(["numba", "systran-align"])}, results)


if __name__ == "__main__":
    main()
