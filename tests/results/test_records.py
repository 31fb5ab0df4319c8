"""Records are checked when they are read: an error names file and key."""

import json
from pathlib import Path
from typing import Any

import pytest

from pipelines.results.paper import read_paper
from pipelines.results.records import read_records
from tests.results.made import put, row, run, sweep


def read(results: Path) -> Any:
    return read_records(results)


def test_a_complete_record_is_read(results: Path) -> None:
    """A record can have everything that stage evaluate writes, including scores without replacement."""
    record = run("multi30k-en-de", 36.0, 37.0, ensemble=38.0)
    record["metrics"]["without_replacement"] = run("generated", 30.0)["metrics"]
    put(results, "one", record)
    found = read(results)["one"]
    assert found.metrics.ensemble["bleu"] == 38.0
    assert found.metrics.without_replacement.mean["bleu"] == 30.0
    assert found.cost.hours == {"GPU": 3.25}


def test_broken_json_is_refused(results: Path) -> None:
    """A merge conflict can leave such a file."""
    put(results, "one", run("multi30k-en-de", 36.0))
    path = results / "one.json"
    path.write_text(path.read_text()[:-20])
    with pytest.raises(ValueError, match=r"one\.json is not valid JSON: .*Correct it"):
        read(results)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        ({"commmit": "x"}, r"commmit: found 'x', unknown key; remove it"),
        ({"commit": "main"}, r"commit: found 'main'"),
        ({"metrics": {"seeds": {}, "mean": {}}}, r"metrics\.seeds: found \{\}"),
        ({"metrics": {"seeds": {"1": {"bleu": "x"}}, "mean": {}}}, r"metrics\.seeds\.1\.bleu: found 'x'"),
        ({"perplexities": {"2": 6.5}}, r"perplexities are of seeds 2, metrics of 1, params of 1"),
        ({"kind": "sweep"}, r"table: missing"),
        ({"kind": "chair"}, r"the file: found .*'run', 'sweep'"),
        ({"cost": {"hardware": [], "hours": {"TPU": 1.0}, "torch": []}}, r"cost\.hours\.TPU.*wanted 'GPU'"),
    ],
)  # fmt: skip
def test_an_error_names_file_and_key(results: Path, edit: dict[str, Any], message: str) -> None:
    """Records are sometimes edited by hand."""
    put(results, "one", run("multi30k-en-de", 36.0) | edit)
    with pytest.raises(ValueError, match=rf"(?s)one\.json has \d fault\(s\):.*{message}"):
        read(results)


def test_a_missing_key_is_named(results: Path) -> None:
    """A score without its test set says nothing (T30)."""
    record = run("multi30k-en-de", 36.0)
    del record["test_set"]
    put(results, "one", record)
    with pytest.raises(ValueError, match=r"(?s)one\.json has 1 fault.*test_set: missing; add it"):
        read(results)


def test_errors_in_rows_name_row_and_column(results: Path) -> None:
    """A sweep has many rows; it must have at least one."""
    record = sweep("table5", "multi30k-en-de", row("1,2"), row("1", perplexity="five"))
    put(results, "t", record)
    with pytest.raises(ValueError, match=r"(?s)t\.json has 1 fault.*rows\.1\.perplexity: found 'five'"):
        read(results)
    put(results, "t", record | {"rows": []})
    with pytest.raises(ValueError, match=r"(?s)t\.json has 1 fault.*rows: found \[\]"):
        read(results)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('bleu: "29.45"', 'chrf: "29.45"', r"rows\.1\.chrf: found '29.45', unknown key"),
        ('bleu: "29.45"', 'rouge1: "29.45"', r"'ConvS2S \(word 80K\)' has rouge1; wanted bleu"),
        ('bleu: "29.45"', 'bleu: "about 29"', r"rows\.1\.bleu: found 'about 29'"),
        ("of: mean", "of: men", r"rows\.1\.run\.of: found 'men', wanted 'mean', 'best'"),
        ("rows:", "rows: [", r"is not valid YAML"),
        ('bleu: "28.1"', "bleu: 28.10", r"rows\.0\.bleu: found 28\.1, wanted text; put it in quotes"),
    ],
)
def test_errors_in_paper_yaml_name_the_key(results: Path, old: str, new: str, message: str) -> None:
    """paper.yaml is edited by hand, so the error must name file and key."""
    path = results.parent / "paper.yaml"
    path.write_text(path.read_text().replace(old, new, 1))
    with pytest.raises(ValueError, match=rf"(?s)paper\.yaml.*{message}"):
        read_paper(results.parent)


def test_scores_may_be_whole_numbers(results: Path) -> None:
    """Stage evaluate may write whole numbers."""
    put(results, "one", run("multi30k-en-de", 36))
    assert json.loads((results / "one.json").read_text())["metrics"]["mean"]["bleu"] == 36.0
    assert read(results)["one"].metrics.mean["unknown_words"] == 3.0


def test_records_come_in_the_order_of_their_names(results: Path) -> None:
    """With the extension, "run-words.json" sorts before "run.json", and the page would have two orders."""
    for name in ("run-words", "run"):
        put(results, name, run("generated", 30.0))
    assert [name for name in read_records(results) if name.startswith("run")] == ["run", "run-words"]
