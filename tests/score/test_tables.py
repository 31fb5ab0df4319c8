"""Tables of results, with values that can be checked by eye."""

import math

import pytest

from convs2s.score.corpus_scores import SystemScores, bleu, chrf
from convs2s.score.tables import (
    Result,
    example_table,
    length_class,
    length_table,
    nested_metrics,
    score_table,
    spread,
    tab_separated,
)


def result(member: str, text: str, bleu: float) -> Result:
    return Result(member, text, SystemScores(bleu, bleu + 1, 50.0, 1.0, 3))


def test_mean_and_deviation_are_over_the_seeds_alone() -> None:
    """20 and 23 have mean 21.5 and sample deviation sqrt(2 * 1.5**2 / 1) = 2.12, without the ensemble."""
    scores = [("1", 20.0), ("2", 23.0), ("ensemble", 90.0)]
    table = score_table([result(member, "plain", bleu) for member, bleu in scores])
    assert table["member"].tolist() == ["1", "2", "mean", "std", "ensemble"]
    assert table["bleu"].tolist() == [20.0, 23.0, 21.5, round(math.sqrt(4.5), 2), 90.0]
    assert table["unknown_words"].tolist() == [3, 3, 3, 0, 3]


def test_metrics_nest_by_seed_mean_and_ensemble() -> None:
    """`dvc metrics show` names them seeds.1.bleu, mean.bleu, std.bleu and ensemble.bleu."""
    members = [("1", 20.126), ("2", 22.0), ("ensemble", 30.0)]
    metrics = nested_metrics(score_table([result(m, "plain", b) for m, b in members]), "plain")
    assert list(metrics) == ["seeds", "mean", "std", "ensemble"]
    assert metrics["seeds"]["1"] == {  # type: ignore[index]
        "bleu": 20.13, "bleu_tokenized": 21.13, "chrf": 50.0, "length_ratio": 1.0, "unknown_words": 3.0,
    }  # fmt: skip
    assert metrics["ensemble"]["bleu"] == 30.0  # type: ignore[index]


@pytest.mark.parametrize(
    ("words", "name"),
    [(0, "00-05"), (5, "00-05"), (6, "06-10"), (30, "21-30"), (50, "31-50"), (51, "51+"), (2000, "51+")],
)
def test_length_classes_have_no_gap(words: int, name: str) -> None:
    """Every length is in exactly one class, bounds included."""
    assert length_class(words) == name


def test_scores_by_length_are_those_of_the_sentences_in_the_class() -> None:
    """Lengths 3 and 4 share a class, 60 has its own; the other classes have no sentences and no rows."""
    system, references = ["a b c d e", "x", "a b c d z"], ["a b c d e", "y", "a b c d e"]
    table = length_table([3, 60, 4], [system], references)
    assert table["source_words"].tolist() == ["00-05", "51+"]
    assert table["sentences"].tolist() == [2, 1]
    short = [system[0], system[2]], [references[0], references[2]]
    assert table["bleu"][0] == pytest.approx(bleu(*short).value, abs=0.005)
    assert table["chrf"][0] == pytest.approx(chrf(*short).value, abs=0.005)
    assert table["chrf"][1] == 0.0


def test_examples_are_spread_over_the_whole_test_set() -> None:
    """Neighboring sentences often come from the same text, so each third contributes its middle one."""
    assert spread(range(9), 3) == [1, 4, 7]
    assert spread([5, 6], 5) == [5, 6]
    assert spread([], 5) == []
    assert spread(range(1000), 5) == [100, 300, 500, 700, 900]


def test_examples_name_their_line_and_scores() -> None:
    """Line numbers count from 1, as editors do."""
    table = example_table([1], ["s0", "s1"], ["no", "ja ja ja ja"], ["ja", "ja ja ja ja"])
    assert table.to_dict("records") == [
        {
            "line": 2, "source": "s1", "hypothesis": "ja ja ja ja", "reference": "ja ja ja ja",
            "bleu": 100.0, "chrf": 100.0,
        }
    ]  # fmt: skip


def test_a_tab_in_a_sentence_does_not_add_a_column() -> None:
    """Every row has as many fields as the header; quotes stay as they are."""
    table = example_table([0], ['say "a\tb"'], ["h\r"], ["r"])
    header, row = tab_separated(table)
    assert header == "line\tsource\thypothesis\treference\tbleu\tchrf"
    assert row.split("\t")[:4] == ["1", 'say "a b"', "h ", "r"]


def test_scores_by_length_are_means_over_systems() -> None:
    """A perfect and a hopeless system give half of 100."""
    table = length_table([1], [["a b c d"], ["x"]], ["a b c d"])
    assert table["bleu"].tolist() == [50.0]
    assert table["chrf"].tolist() == [50.0]


def test_one_seed_has_no_deviation() -> None:
    """A sample of one has no spread, and JSON has no NaN."""
    table = score_table([result("7", "plain", 20.0)])
    assert table["member"].tolist() == ["7", "mean"]
    assert not table.isna().to_numpy().any()
