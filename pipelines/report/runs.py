"""Print the scores of commits and their experiments, with the parameters that differ: `make runs`."""

import json
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd

from convs2s.config.load import flatten_values
from pipelines import shell
from pipelines.check import check_git, check_merge
from pipelines.report.run import Run, open_run
from pipelines.report.scores import WIDTH
from pipelines.report.significance import MEANING, compare_scores, identify_references
from pipelines.report.tables import find_differing, show_difference, summarize_scores

HERE, WORKSPACE = ".", "workspace"
"""Our name for the files that are here now, and DVC's."""
SHORT = 7
"""Digits of a commit."""
LONGEST_SUBJECT = 40


@dataclass(frozen=True)
class RunRow:
    """A commit, an experiment, or the files that are here now.

    Attributes:
        name: as `make report RUNS=` takes it.
        date: of the commit or experiment; empty for the files here.
        subject: first line of a commit's message.
        params: values of params.yaml by dotted name.
        scores: the main scores by title; none if there are no results.
    """

    name: str
    is_commit: bool
    date: str
    subject: str
    params: Mapping[str, str]
    scores: Mapping[str, str]


def read_rows(root: Path, commits: int) -> list[RunRow]:
    """Return the files here, the last commits, and the experiments of each, as DVC lists them."""
    check_git(root)
    check_merge(root)
    text = shell.run(sys.executable, "-m", "dvc", "exp", "show", "--json", "--num", str(commits), cwd=root)
    return [read_state(root, name, state) for entry in json.loads(text) for name, state in list_states(entry)]


def list_states(entry: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield a commit of DVC's list, without a name, then its experiments, each with its name."""
    yield "", entry
    for experiment in entry["experiments"] or []:
        newest = experiment["revs"][0]
        yield experiment["name"] or newest["rev"][:SHORT], newest


def read_state(root: Path, experiment: str, state: Mapping[str, Any]) -> RunRow:
    """Return what the table shows of a state of DVC's list."""
    rev, data = state["rev"], state["data"] or {}
    is_commit = not experiment and rev != WORKSPACE
    params = read_values(data.get("params"), "params.yaml")
    params.pop("run", None)  # no result depends on it
    of_sections = flatten_values(params)
    subject = shell.run("git", "log", "-1", "--format=%s", rev, cwd=root) if is_commit else ""
    return RunRow(
        name=experiment or (HERE if rev == WORKSPACE else rev[:SHORT]),
        is_commit=is_commit,
        date=(data.get("timestamp") or "").replace("T", " ")[:16],
        subject=textwrap.shorten(subject, LONGEST_SUBJECT, placeholder=" …"),
        # Twice, as download has a section for each split.
        params={name: show_value(value) for name, value in flatten_values(of_sections).items()},
        scores=read_scores(data.get("metrics"), params.get("seeds", [])),
    )


def read_values(files: Mapping[str, Any] | None, path: str) -> dict[str, Any]:
    """Return the content of one of DVC's files of parameters or metrics; nothing if the state lacks it."""
    return dict((files or {}).get(path, {}).get("data") or {})


def show_value(value: Any) -> str:
    """Return a value as in params.yaml, on one line; of the sources of a corpus, only the files or names."""
    if isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
        return " + ".join(show_sources(source) for source in value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def show_sources(source: Mapping[str, Any]) -> str:
    """Return the files or the name of a source of pairs in params.yaml."""
    return ", ".join(
        str(source[key]) for key in ("source", "target", "tsv", "memory", "name") if source.get(key)
    )


def read_scores(metrics: Mapping[str, Any] | None, seeds: Sequence[int]) -> dict[str, str]:
    """Return the main scores of a state of DVC's list by title; none if it has not been evaluated."""
    evaluation = read_values(metrics, "data/evaluation/metrics.json")
    trainings = [read_values(metrics, f"data/trained/{seed}/metrics.json") for seed in seeds]
    if not evaluation or not all(trainings):
        return {}
    return summarize_scores(evaluation, [training["validation_perplexity"] for training in trainings])


def compare_runs(root: Path, rows: Sequence[RunRow]) -> tuple[dict[str, dict[str, str]], list[str]]:
    """Compare the scores of all rows with those of the last commit, or of the first row without one.

    Returns:
        Of each row that could be compared, by its name, the differences and their p by title; and lines that
        explain them, and say why others could not.
    """
    notes: list[str] = []
    runs: list[Run] = []
    names: list[str] = []
    with TemporaryDirectory() as temporary:
        for row in sorted(rows, key=lambda row: not row.is_commit):
            if not row.scores:
                continue
            try:
                run = open_run(str(root) if row.name == HERE else row.name, root, Path(temporary))
                references = identify_references(run)
            except (ValueError, OSError):
                notes.append(
                    f"{row.name} is not compared, as its translations are not here (dvc pull --all-commits)"
                )
                continue
            if runs and references != identify_references(runs[0]):
                notes.append(f"{row.name} is not compared, as its test set is not that of {names[0]}.")
                continue
            runs.append(run)
            names.append(row.name)
        if len(runs) < 2:
            return {}, notes
        compared = compare_scores(runs)
    cells: dict[str, dict[str, str]] = {name: {} for name in names[1:]}
    for title, comparisons, _ in compared:
        for name, comparison in zip(names[1:], comparisons[1:], strict=True):
            shown = show_difference(comparison)
            cells[name] |= {f"{title}, {column}": text for column, text in shown.items()}
    signatures = [f"Signature of {title}: {signature}" for title, _, signature in compared]
    return cells, [f"Differences are from {names[0]}. {MEANING}", *signatures, *notes]


def format_runs(rows: Sequence[RunRow], comparisons: Mapping[str, Mapping[str, str]]) -> str:
    """Return the table for people: a run is a row or, where there are more columns than runs, a column."""
    differing = find_differing([row.params for row in rows if row.params])
    lines = [
        {"commit": row.subject, "date": row.date}
        | {name: row.params.get(name, "") for name in differing}
        | dict(row.scores)
        | dict(comparisons.get(row.name, {}))
        for row in rows
    ]
    table = pd.DataFrame(lines, index=pd.Index([row.name for row in rows], name="run")).fillna("")
    table = table.loc[:, (table != "").any()].replace("", "-")
    if len(table) < len(table.columns):
        table = table.T
    return table.to_string()


def main(arguments: Sequence[str]) -> int:
    """Print the table for the repository in the working directory; return the exit status."""
    try:
        (commits,) = arguments
        if not (commits.isascii() and commits.isdigit() and int(commits) > 0):
            raise ValueError(f"N: expected a number of commits, such as N=5, found {commits!r}")
        rows = read_rows(Path(), int(commits))
        comparisons, notes = compare_runs(Path(), rows)
    except (ValueError, RuntimeError) as error:
        print(f"make runs: {error}", file=sys.stderr)
        return 1
    print(format_runs(rows, comparisons))
    for note in notes:
        print("", *textwrap.wrap(note, WIDTH), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
