"""The significance of a difference of scores, compared with sacreBLEU's own command."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from convs2s.base.files import write_lines
from pipelines.report.run import Run, open_run
from pipelines.report.significance import compare_all, compare_scores, identify_references
from tests.report.made import GOOD, TEST, make_run

BAD = ["die Katze schläft .", "fett", "ein Satz mit Wörtern ."]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    """Return three runs; of the last one, the references are scored in lower case."""
    folder = tmp_path_factory.mktemp("runs")
    made = {"good": ({}, GOOD), "bad": ({}, BAD), "lower": ({"tokenize.lowercase": True}, GOOD)}
    for name, (changes, lines) in made.items():
        make_run(folder / name, changes, {"1": lines})
    return [open_run(str(folder / name), folder, folder) for name in made]


def test_the_figures_are_those_of_sacrebleu_s_command(runs: list[Run], tmp_path: Path) -> None:
    """Users who doubt a p-value can compute it again."""
    write_lines(tmp_path / "reference", [reference for _, reference in TEST])
    write_lines(tmp_path / "good", GOOD)
    write_lines(tmp_path / "bad", BAD)
    command = [sys.executable, "-m", "sacrebleu", "reference", "-i", "good", "bad", "--paired-bs"]
    command += ["--metrics", "bleu", "chrf", "--format", "latex", "--width", "4"]  # its JSON lacks chrF
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    rows = [line.split("&")[1:] for line in done.stdout.splitlines() if re.search("(good|bad) +&", line)]
    compared = compare_scores(runs[:2])
    assert [title for title, *_ in compared] == ["BLEU", "chrF2"]
    for (_, (first, second), signature), expected in zip(compared, zip(*rows, strict=True), strict=True):
        for comparison, text in zip((first, second), expected, strict=True):
            figures = [comparison.score, comparison.mean, comparison.interval]
            figures += [] if comparison.p is None else [comparison.p]
            assert figures == pytest.approx([float(part) for part in re.findall(r"\d+\.\d+", text)], abs=1e-4)
        assert first.p is None and second.p is not None
        assert second.difference == second.score - first.score
        assert "bs:1000" in signature and "seed:12345" in signature


def test_equal_translations_have_no_p(runs: list[Run]) -> None:
    """SacreBLEU gives 1 / 1,001, which reads as a significant difference of nothing."""
    for _, (first, second), _ in compare_scores([runs[0], runs[0]]):
        assert (first.difference, second.difference, second.p) == (None, 0.0, None)


def test_only_scores_against_the_same_references_are_compared(runs: list[Run]) -> None:
    """Lower-cased references are another test, even if the file is the same."""
    good, bad, lower = runs
    assert identify_references(good) == identify_references(bad) != identify_references(lower)
    compared = compare_all([lower, good, bad])
    assert [[one.run.name for one in same.comparisons] for same in compared] == [[good.name, bad.name]] * 2
