"""`make runs`: commits and experiments with what differs between them."""

import shutil
from pathlib import Path

import pytest

from pipelines.report import runs
from pipelines.report.runs import RunRow, compare_runs, format_runs, read_rows, show_value
from tests.flows import toy


def cells(table: str) -> dict[str, list[str]]:
    """Return a table that has a line for each fact: the facts of all runs by title."""
    titles = ["validation perplexity", "BLEU, ensemble", "chrF2, ensemble"]
    lines = {}
    for line in table.splitlines():
        title = next((title for title in titles if line.startswith(title)), line.split()[0])
        lines[title] = line.removeprefix(title).split()
    return lines


def test_rows_are_runs_by_the_names_that_a_report_takes(finished: Path) -> None:
    """The files here, a commit by its hash, an experiment by its name; each has its own values."""
    rows = read_rows(finished, 2)
    head, first = toy.run(finished, "git", "log", "--format=%h").split()
    assert [row.name for row in rows] == [".", head, "more-dropout", first]
    assert [row.params["train.dropout"] for row in rows] == ["0.3", "0.1", "0.2", "0.1"]
    assert [row.subject for row in rows] == ["", "toy", "", "toy"]
    assert [bool(row.scores) for row in rows] == [True, True, True, False]
    assert [bool(row.date) for row in rows] == [False, True, True, True]


def test_the_table_has_all_that_differs_and_scores_with_two_decimals(finished: Path) -> None:
    """A perplexity with 14 digits hides the numbers next to it."""
    rows = read_rows(finished, 1)
    table = cells(format_runs(rows, {}))
    assert table["run"] == [row.name for row in rows]
    assert table["train.dropout"] == ["0.3", "0.1", "0.2"]
    assert table["validation perplexity"] == ["6.00"] * 3
    assert "BLEU, ensemble" in table and "seeds" not in table


def test_differences_are_from_the_last_commit(finished: Path) -> None:
    """The experiment's ensemble has the same translations; its seeds have not, but they are not compared."""
    rows = read_rows(finished, 1)
    comparisons, notes = compare_runs(finished, rows)
    same = {"BLEU, difference": "+0.00", "BLEU, p": "–", "chrF2, difference": "+0.00", "chrF2, p": "–"}
    assert comparisons == {".": same, "more-dropout": same}
    assert notes[0].startswith(f"Differences are from {rows[1].name}. p: ")
    assert [note.partition(":")[0] for note in notes[1:]] == ["Signature of BLEU", "Signature of chrF2"]
    assert all("bs:1000" in note for note in notes[1:])


def test_a_run_whose_translations_are_elsewhere_is_shown_without_a_comparison(
    finished: Path, tmp_path: Path
) -> None:
    """Another machine may have run it; its scores are known, but not its sentences."""
    copy = Path(shutil.copytree(finished, tmp_path / "copy", symlinks=True))
    rows = read_rows(copy, 1)
    shutil.rmtree(copy / ".dvc" / "cache")
    comparisons, notes = compare_runs(copy, rows)
    assert comparisons == {}
    advice = "is not compared, as its translations are not here (dvc pull --all-commits)"
    assert notes == [f"{row.name} {advice}" for row in rows[1:]]


def test_the_subject_of_a_commit_is_shown_and_data_that_differ() -> None:
    """40,000 pairs must not stand beside 8,000 as if dropout made the difference."""
    many, few = ({"download.train.pairs": pairs} for pairs in ("40000", "8000"))
    rows = [
        RunRow("a1b2c3d", True, "2026-11-28 23:40", "All pairs", many, {"BLEU": "27.52"}),
        RunRow("d4e5f6a", True, "2026-11-28 23:45", "Few pairs", few, {"BLEU": "4.53"}),
    ]
    table = format_runs(rows, {"d4e5f6a": {"BLEU, difference": "-22.99", "BLEU, p": "0.001"}})
    assert [" ".join(line.split()) for line in table.splitlines()] == [
        "run a1b2c3d d4e5f6a",
        "commit All pairs Few pairs",
        "date 2026-11-28 23:40 2026-11-28 23:45",
        "download.train.pairs 40000 8000",
        "BLEU 27.52 4.53",
        "BLEU, difference - -22.99",
        "BLEU, p - 0.001",
    ]


def test_sources_are_shown_by_their_files() -> None:
    """All of their keys would fill the table."""
    sources = [
        {"kind": "files", "tsv": "a.tsv", "columns": [0, 1]},
        {"kind": "files", "source": "b", "target": "c"},
    ]
    assert show_value([*sources, {"kind": "sacrebleu", "name": "wmt14"}]) == "a.tsv + b, c + wmt14"
    assert show_value([3, 5]) == "[3, 5]" and show_value(None) == "null"


@pytest.mark.parametrize("number", ["x", "0", "-1", "", "1.5", "²"])
def test_a_number_of_commits_that_is_none_is_refused(number: str, capsys: pytest.CaptureFixture[str]) -> None:
    """DVC's words, or a traceback, would not name N."""
    assert runs.main([number]) == 1
    message = f"N: expected a number of commits, such as N=5, found {number!r}"
    assert capsys.readouterr().err == f"make runs: {message}\n"
