"""The report at the end of `make repro`."""

import json
from pathlib import Path

import pytest

from convs2s.text.corpus.files import write_lines
from pipelines.report.scores import main, report

SCORES = """text,member,bleu,bleu_tokenized,chrf,length_ratio,unknown_words
plain,1,20.5,21.0,50.25,0.98,1234.0
plain,mean,20.5,21.0,50.25,0.98,1234.0
"""
SEVERAL = """text,member,bleu,bleu_tokenized,chrf,length_ratio,unknown_words
plain,1,20.5,21.0,50.25,0.98,12.0
plain,2,21.5,22.0,51.25,0.99,13.0
plain,mean,21.0,21.5,50.75,0.985,12.5
plain,std,0.71,0.71,0.71,0.0071,0.7
plain,ensemble,23.0,23.5,52.0,0.98,12.0
replaced,1,22.5,22.0,51.25,0.98,0.0
"""
SIGNATURE = "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0"
LAST = ["length", "ratio", "<unk>"]
EXAMPLES = [
    "line\tmodel\tsource\thypothesis\treference\tbleu\tchrf",
    "17\t1\tthe girl sleeps .\tdas Mädchen schläft .\t\t30.0\t60.0",
    "99\t1\t" + "word " * 40 + "\ta\x1b[2Jb\tc\t0.0\t5.0",
]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Return a data folder with the results that a report needs."""
    evaluation = tmp_path / "evaluation"
    write_lines(evaluation / "scores.csv", SCORES.split("\n")[:-1])
    signatures = {"bleu": SIGNATURE, "chrf": "nc:6"}
    write_lines(evaluation / "signatures.json", [json.dumps(signatures)])
    write_lines(evaluation / "examples.tsv", EXAMPLES)
    test_set = {"name": "wmt14/full", "lines": 3003, "sha256": "0" * 64}
    write_lines(evaluation / "test_set.json", [json.dumps(test_set)])
    return tmp_path


def rows(text: str, title: str) -> list[list[str]]:
    """Return the words of each line of a section of the report."""
    lines = text.split("\n")
    start = lines.index(title) + 2
    return [line.split() for line in lines[start : lines.index("", start)]]


def test_the_score_table_has_a_row_per_model(data: Path) -> None:
    """With one seed, a row for the mean would say the same. Two spaces separate the column titles."""
    assert "  BLEU  tokenized BLEU  chrF2  length ratio  " in report(data)
    assert rows(report(data), "Scores of the test set") == [
        ["model", "BLEU", "tokenized", "BLEU", "chrF2", "length", "ratio", "<unk>"],
        ["seed", "1", "20.50", "21.00", "50.25", "0.9800", "1,234.0"],
    ]


def test_several_seeds_show_mean_deviation_and_ensemble(data: Path) -> None:
    """With replacement, each row also says which text it scores."""
    write_lines(data / "evaluation" / "scores.csv", SEVERAL.split("\n")[:-1])
    found = rows(report(data), "Scores of the test set")[1:]
    assert found == [
        ["seed", "1", "kept", "20.50", "21.00", "50.25", "0.9800", "12.0"],
        ["seed", "2", "kept", "21.50", "22.00", "51.25", "0.9900", "13.0"],
        ["mean", "kept", "21.00", "21.50", "50.75", "0.9850", "12.5"],
        ["standard", "deviation", "kept", "0.71", "0.71", "0.71", "0.0071", "0.7"],
        ["ensemble", "kept", "23.00", "23.50", "52.00", "0.9800", "12.0"],
        ["seed", "1", "replaced", "22.50", "22.00", "51.25", "0.9800", "0.0"],
    ]


def test_rouge_is_shown_where_it_was_scored(data: Path) -> None:
    """Only summaries are scored with ROUGE."""
    write_lines(
        data / "evaluation" / "scores.csv",
        [
            "text,member,bleu,bleu_tokenized,chrf,rouge1,rouge2,rougeL,length_ratio,unknown_words",
            "plain,1,20.5,21.0,50.25,35.876,17.48,33.29,0.98,3.0",
        ],
    )
    assert rows(report(data), "Scores of the test set") == [
        ["model", "BLEU", "tokenized", "BLEU", "chrF2", "ROUGE-1", "ROUGE-2", "ROUGE-L", *LAST],
        ["seed", "1", "20.50", "21.00", "50.25", "35.88", "17.48", "33.29", "0.9800", "3.0"],
    ]


def test_scores_come_with_their_signatures(data: Path) -> None:
    """BLEU without a signature says little; readers copy the whole of it."""
    assert f"\nBLEU            {SIGNATURE}\nchrF2           nc:6\n" in report(data)


def test_scores_come_with_their_test_set(data: Path) -> None:
    """Name, lines and hash identify it: newstest2014 alone is three different sets (T30)."""
    assert f"\nof wmt14/full: 3,003 lines, sha256 {'0' * 64}\n" in report(data)


def test_examples_show_source_hypothesis_and_reference(data: Path) -> None:
    """Each has a label, and an empty one is marked as such."""
    lines = report(data).split("\n")
    start = lines.index("line 17, by seed 1: sentence BLEU 30.0, chrF2 60.0")
    assert lines[start + 1 : start + 5] == [
        "  source      the girl sleeps .",
        "  hypothesis  das Mädchen schläft .",
        "  reference   (empty)",
        "",
    ]


def test_long_sentences_wrap_within_100_columns(data: Path) -> None:
    """No word is lost, and further lines are indented to the start of the first."""
    text = report(data).partition("To use a model")[0]  # a path cannot wrap
    assert max(map(len, text.split("\n"))) <= 100
    assert text.count("word") - text.count("words") == 40
    assert "\n              word word" in text


def test_control_characters_do_not_reach_the_terminal(data: Path) -> None:
    """A corpus must not be able to clear the screen."""
    assert "a\N{REPLACEMENT CHARACTER}[2Jb" in report(data)
    assert "\x1b" not in report(data)


def test_corpus_and_training_figures_are_shown_when_they_are_there(data: Path) -> None:
    """Names are those of the files; a section without a file is left out, as is a seed without scores."""
    write_lines(data / "evaluation" / "scores.csv", SEVERAL.split("\n")[:-1])
    assert "Corpus" not in report(data) and "Training" not in report(data)
    filtered = {"pairs_read": 30000, "removed": {"too_long": 12}}
    write_lines(data / "filtered" / "report.json", [json.dumps(filtered)])
    for seed, perplexity in ((1, 4.5678), (2, 0.04321), (3, 1.0)):
        metrics = {"validation_perplexity": perplexity, "updates": 3000.0}
        write_lines(data / "trained" / str(seed) / "metrics.json", [json.dumps(metrics)])
    text = report(data)
    assert rows(text, "Corpus") == [["pairs", "read", "30,000"], ["removed", "too", "long", "12"]]
    assert rows(text, "Training") == [
        ["seed", "1", "2"], ["validation", "perplexity", "4.57", "0.04321"], ["updates", "3,000", "3,000"],
    ]  # fmt: skip


def test_the_report_ends_with_what_comes_next(data: Path) -> None:
    """Users next want the command that uses the model, and the page that lists all files."""
    use = f"To use a model: .venv/bin/convs2s translate --model {data / 'models' / '1'}"
    assert report(data).endswith(f"\n\n{use}\nAll results: docs/tutorial.md\n")


def test_an_experiment_must_be_restored_before_its_models_are_used(data: Path) -> None:
    """The workspace still has the models of another run under the same path."""
    text = report(data, "dropout-0-3-abc123")
    assert "\nTo use a model: dvc exp apply dropout-0-3-abc123 && .venv/bin/convs2s translate" in text


def test_models_of_other_seeds_are_named(data: Path) -> None:
    """DVC leaves them when train.seeds gets shorter; they may be of other data."""
    for seed in "12":
        (data / "models" / seed).mkdir(parents=True)
    assert f"Left from earlier runs, and not scored here: {data / 'models' / '2'}\n\nTo use" in report(data)
    assert "models/1\n" in report(data)


def test_the_model_to_use_is_one_of_the_scored(data: Path) -> None:
    """Seeds need not begin with 1."""
    scores = (data / "evaluation" / "scores.csv").read_text(encoding="utf-8")
    (data / "evaluation" / "scores.csv").write_text(scores.replace("plain,1,", "plain,7,"), encoding="utf-8")
    assert f"--model {data}/models/7\n" in report(data)


@pytest.mark.parametrize("name", ["scores.csv", "signatures.json", "examples.tsv"])
def test_missing_results_say_which_command_makes_them(
    data: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The user gets one line on stderr and exit status 1, but no traceback."""
    (data / "evaluation" / name).unlink()
    assert main([str(data)]) == 1
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith(f"{data / 'evaluation' / name} does not exist: the run has not")
    assert "Run `make repro`" in output.err


def test_the_command_prints_the_report(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`make repro` ends with this command, so it must also succeed."""
    assert main([str(data)]) == 0
    assert capsys.readouterr().out == report(data)


def test_an_edit_since_the_run_began_is_named(data: Path) -> None:
    """The scores are of the values in the snapshot, not of those that the user sees in params.yaml."""
    values = "train: {dropout: 0.1}\n"
    (data / "snapshot").mkdir()
    (data / "snapshot" / "params.yaml").write_text(values)
    (data.parent / "params.yaml").write_text(f"# a comment\n{values}")
    assert "params.yaml" not in report(data)
    (data.parent / "params.yaml").write_text(values.replace("0.1", "0.3"))
    assert "The results above are of the old values:\n  train.dropout: 0.1 -> 0.3\n" in report(data)
