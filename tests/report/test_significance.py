"""The significance of a difference of BLEU, compared with sacreBLEU's own command."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from convs2s.base.files import write_lines
from pipelines.report.run import Run, open_run
from pipelines.report.significance import compare_all, compare_bleu, identify_references
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
    done = subprocess.run(
        [*command, "-m", "bleu", "-f", "json"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    first, second = (system["BLEU"] for system in json.loads(done.stdout))
    comparisons, signature = compare_bleu(runs[:2])
    for comparison, system in zip(comparisons, (first, second), strict=True):
        figures = comparison.bleu, comparison.mean, comparison.interval
        assert figures == pytest.approx((system["score"], system["mean"], system["ci"]))
    assert comparisons[0].p is None and comparisons[1].p == pytest.approx(second["p_value"])
    assert comparisons[1].difference == pytest.approx(second["score"] - first["score"])
    assert "bs:1000" in signature and "seed:12345" in signature and "tok:13a" in signature


def test_equal_translations_have_no_p(runs: list[Run]) -> None:
    """SacreBLEU gives 1 / 1,001, which reads as a significant difference of nothing."""
    first, second = compare_bleu([runs[0], runs[0]]).comparisons
    assert (first.difference, second.difference, second.p) == (None, 0.0, None)


def test_only_scores_against_the_same_references_are_compared(runs: list[Run]) -> None:
    """Lower-cased references are another test, even if the file is the same."""
    good, bad, lower = runs
    assert identify_references(good) == identify_references(bad) != identify_references(lower)
    compared = compare_all([lower, good, bad])
    assert [[one.run.name for one in same.comparisons] for same in compared] == [[good.name, bad.name]]
