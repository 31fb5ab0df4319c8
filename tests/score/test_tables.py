"""Tables of results, with values that can be checked by eye."""

import math

import pytest

from convs2s.score.corpus_scores import SystemScores, bleu, chrf
from convs2s.score.tables import (
    Result,
    example_table,
    length_table,
    nested_metrics,
    score_table,
    spread,
    tab_separated,
)


def result(member: str, text: str, bleu: float) -> Result:
    return Result(member, text, SystemScores(bleu, bleu + 1, 50.0, 1.0, 3))


def test_mean_and_deviation_are_over_the_seeds_alone() -> None:
    """20 and 23 have mean 21.5 and sample deviation sqrt(2 * 1.5**2 / 1) = 2.12; one seed alone has none."""
    scores = [("1", 20.0), ("2", 23.0), ("ensemble", 90.0)]
    table = score_table([result(member, "plain", bleu) for member, bleu in scores])
    assert table["member"].tolist() == ["1", "2", "mean", "std", "ensemble"]
    assert table["bleu"].tolist() == [20.0, 23.0, 21.5, round(math.sqrt(4.5), 2), 90.0]
    assert table["unknown_words"].tolist() == [3, 3, 3, 0, 3]
    assert score_table([result("7", "plain", 20.0)])["member"].tolist() == ["7", "mean"]


def test_metrics_nest_by_seed_mean_and_ensemble() -> None:
    """`dvc metrics show` names them seeds.1.bleu, mean.bleu, std.bleu and ensemble.bleu."""
    members = [("1", 20.126), ("2", 22.0), ("ensemble", 30.0)]
    metrics = nested_metrics(score_table([result(m, "plain", b) for m, b in members]), "plain")
    assert list(metrics) == ["seeds", "mean", "std", "ensemble"]
    assert metrics["seeds"]["1"] == {  # type: ignore[index]
        "bleu": 20.13, "bleu_tokenized": 21.13, "chrf": 50.0, "length_ratio": 1.0, "unknown_words": 3.0,
    }  # fmt: skip
    assert metrics["ensemble"]["bleu"] == 30.0  # type: ignore[index]


def test_scores_by_length_are_those_of_the_sentences_in_the_class() -> None:
    """Lengths 3 and 5 share a class; scores are means over systems, of which one has only errors."""
    system, references = ["a b c d e", "x", "a b c d z", "x"], ["a b c d e", "y", "a b c d e", "y"]
    table = length_table([3, 51, 5, 6], [system, ["x"] * 4], references)
    assert table["source_words"].tolist() == ["00-05", "06-10", "51+"]
    assert table["sentences"].tolist() == [2, 1, 1]
    short = [system[0], system[2]], [references[0], references[2]]
    assert table["bleu"][0] == pytest.approx(bleu(*short).value / 2, abs=0.005)
    assert table["chrf"].tolist() == pytest.approx([chrf(*short).value / 2, 0, 0], abs=0.005)


def test_examples_are_spread_over_the_whole_test_set() -> None:
    """Neighboring sentences often come from the same text, so each third contributes its middle one."""
    assert spread(range(9), 3) == [1, 4, 7]
    assert spread([5, 6], 5) == [5, 6]
    assert spread([], 5) == []
    assert spread(range(1000), 5) == [100, 300, 500, 700, 900]


def test_examples_are_lines_with_their_number_and_scores() -> None:
    """Lines count from 1, as in editors; a tab in a sentence adds no column, and quotes stay as they are."""
    table = example_table([1], ["s0", 'say "a\tb"'], ["no", "ja ja ja ja\r"], ["ja", "ja ja ja ja"])
    header, row = tab_separated(table)
    assert header == "line\tsource\thypothesis\treference\tbleu\tchrf"
    assert row.split("\t") == ["2", 'say "a b"', "ja ja ja ja ", "ja ja ja ja", "100.0", "100.0"]
