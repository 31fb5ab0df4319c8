"""The report at the end of `make repro`."""

import re
from pathlib import Path

import pytest

from convs2s.base.files import write_json, write_lines
from pipelines.report.scores import summarize

COLUMNS = "text,member,bleu,bleu_tokenized,chrf,length_ratio,unknown_words"
SCORES = [COLUMNS, "plain,1,20.5,21.0,50.25,0.98,1234.0", "plain,mean,20.5,21.0,50.25,0.98,1234.0"]
SEVERAL = [
    COLUMNS,
    "plain,1,20.5,21.0,50.25,0.98,12.0",
    "plain,2,21.5,22.0,51.25,0.99,13.0",
    "plain,mean,21.0,21.5,50.75,0.985,12.5",
    "plain,std,0.71,0.71,0.71,0.0071,0.7",
    "plain,ensemble,23.0,23.5,52.0,0.98,12.0",
    "replaced,1,22.5,22.0,51.25,0.98,0.0",
]
SIGNATURE = "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0"
EXAMPLES = [
    "line\tmodel\tsource\thypothesis\treference\tbleu\tchrf",
    "17\t1\tthe girl sleeps .\tdas Mädchen schläft .\t\t30.0\t60.0",
    "99\t1\t" + "word " * 40 + "\ta\x1b[2Jb\tc\u202f!\t0.0\t5.0",
]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Return a data folder with the results that a report needs."""
    folder = tmp_path / "data" / "evaluation"
    write_lines(folder / "scores.csv", SCORES)
    write_lines(folder / "examples.tsv", EXAMPLES)
    write_json(folder / "metrics.json", {"seeds": {}})
    write_json(folder / "signatures.json", {"bleu": SIGNATURE, "chrf": "nc:6"})
    write_json(folder / "test_set.json", {"name": "wmt14/full", "lines": 3003, "sha256": "0" * 64})
    return folder.parent


def rows(text: str, title: str) -> list[str]:
    """Return the lines of a section of the report, with single spaces."""
    lines = text.split("\n")
    start = lines.index(title) + 2
    return [" ".join(line.split()) for line in lines[start : lines.index("", start)]]


def test_the_score_table_has_a_row_per_model(data: Path) -> None:
    """Scores come with their test set and signatures: a BLEU without them says little.

    With one seed, a row for the mean would say the same; with replacement, rows say which text they score.
    """
    assert rows(summarize(data), "Scores of the test set") == [
        "model BLEU tokenized BLEU chrF2 length ratio <unk>",
        "seed 1 20.50 21.00 50.25 0.9800 1,234.0",
    ]
    write_lines(data / "evaluation" / "scores.csv", SEVERAL)
    table = rows(summarize(data), "Scores of the test set")
    assert table[:2] == [
        "model unknown words BLEU tokenized BLEU chrF2 length ratio <unk>",
        "seed 1 kept 20.50 21.00 50.25 0.9800 12.0",
    ]
    names = ["seed 2 kept", "mean kept", "standard deviation kept", "ensemble kept", "seed 1 replaced"]
    assert [re.sub(r" \d+\.\d.*", "", row) for row in table[2:]] == names
    assert f"\nof wmt14/full: 3,003 lines, sha256 {'0' * 64}\n" in summarize(data)
    assert f"\nBLEU            {SIGNATURE}\nchrF2           nc:6\n" in summarize(data)


def test_a_score_without_a_title_has_its_own_name(data: Path) -> None:
    """Another version of the code may have computed it, as in an experiment that adds a score."""
    write_lines(data / "evaluation" / "scores.csv", ["text,member,bleu,ter", "plain,1,20.5,61.25"])
    write_json(data / "evaluation" / "signatures.json", {"ter": "tok:tercom"})
    assert rows(summarize(data), "Scores of the test set") == ["model BLEU ter", "seed 1 20.50 61.25"]
    assert f"\n{'ter':16}tok:tercom\n" in summarize(data)


def test_unknown_characters_are_counted_if_there_are_any(data: Path) -> None:
    """They were copied, not translated, which a BLEU score does not show."""
    assert "unknown char" not in summarize(data)
    write_json(data / "evaluation" / "metrics.json", {"seeds": {}, "unknown_characters": 1200})
    line = "1,200 unknown characters: never seen in training, so copied, not translated"
    assert line in summarize(data).split("\n")


@pytest.mark.parametrize(
    ("ratio", "remark"),
    [(1.73, "have 73% more words"), (0.6, "have 40% fewer words"), (1.1, None), (0.9, None)],
)
def test_a_length_that_is_far_off_gets_a_remark(data: Path, ratio: float, remark: str | None) -> None:
    """A ratio of 1.73 is a model that repeats itself, which its BLEU does not say."""
    write_json(data / "evaluation" / "metrics.json", {"seeds": {}, "mean": {"length_ratio": ratio}})
    lines = [line for line in summarize(data).split("\n") if line.startswith(f"length ratio {ratio:.2f}")]
    assert [str(remark) in line for line in lines] == ([True] if remark else [])


def test_examples_are_wrapped_and_harmless(data: Path) -> None:
    """An empty side is marked; a corpus must not be able to clear the screen."""
    text = summarize(data).partition("To use a model")[0]  # a path cannot wrap
    assert rows(text, "Example translations") == [
        "line 17, model 1: sentence BLEU 30.0, chrF2 60.0",
        "source the girl sleeps .",
        "hypothesis das Mädchen schläft .",
        "reference (empty)",
    ]
    assert max(map(len, text.split("\n"))) <= 100
    assert text.count("word") - text.count("words") == 40
    assert "\n              word word" in text
    assert "a\N{REPLACEMENT CHARACTER}[2Jb" in text and "c\u202f!" in text


def test_mistakes_in_the_corpus_are_shown(data: Path) -> None:
    """The page has all figures; but test pairs that are also training pairs make the scores worthless."""
    overlap = {"test": {"pairs": 1, "sources": 2, "of": 2000}}
    counts = {"pairs_read": 30000, "overlap": overlap, "warnings": ["test: swapped"]}
    write_json(data / "filtered" / "report.json", counts)
    assert "\nWarning: test: swapped\ntest pairs also in training: 1 of 2,000\n" in summarize(data)
