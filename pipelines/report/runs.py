"""Print the scores of commits and their experiments, with the parameters that differ: `make runs`."""

import io
import sys
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from pipelines import shell
from pipelines.check import check_git, check_merge

SCORES = r"(mean|ensemble)\.(bleu|chrf)$"
DROPPED = (  # less important scores, and facts that would fill the table
    r"(?!Experiment|rev|\w+\.\w+$|validation_perplexity)|download\.|(std|mean|ensemble|removed)\.|"
    r"\w+\.(pairs|\w+_words)$"
)


def read_table(root: Path, commits: str) -> str:
    """Return DVC's table of the last commits and their experiments, as CSV with a header."""
    check_git(root)
    check_merge(root)
    options = ("--csv", "--num", commits, "--only-changed", "--keep", SCORES, "--drop", DROPPED)
    return shell.run(sys.executable, "-m", "dvc", "exp", "show", *options, cwd=root)


def show(table: str) -> str:
    """Return the table for people: a run is a row or, where more parameters than runs differ, a column."""
    runs = pd.read_csv(io.StringIO(table), dtype=str).fillna("-")
    names = runs.pop("rev")
    if "Experiment" in runs:
        experiments = runs.pop("Experiment")
        names = experiments.where(experiments != "-", names)
    runs.index = pd.Index(names, name="run")
    if len(runs) < len(runs.columns):
        runs = runs.T
    return runs.to_string()


def main(arguments: Sequence[str]) -> int:
    """Print the table for the repository in the working directory; return the exit status."""
    try:
        print(show(read_table(Path(), *arguments)))
    except (ValueError, RuntimeError) as error:
        print(f"make runs: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
