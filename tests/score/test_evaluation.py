"""Evaluation of what the tests of the stage evaluate do not reach."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from sacrebleu.metrics.ter import TER

from convs2s.base.files import read_json, write_folder
from convs2s.config.load import parse_yaml
from convs2s.package import model_card
from convs2s.score import evaluation
from convs2s.score.corpus_scores import METRICS, Score, bleu
from convs2s.score.evaluation import ScoredText, choose_examples, evaluate, read_references, score_text
from convs2s.score.kinds import DIGITS, SCORES, TITLES, ScoreKind
from convs2s.score.rouge import SETTINGS
from convs2s.score.tables import length_table
from pipelines import sweep_table
from pipelines.report import scores, tables
from pipelines.report.run import open_run
from pipelines.report.significance import compare_scores
from tests.decode.parrot import TOKENIZE
from tests.package.small_package import FACTS
from tests.report.made import GOOD, make_run

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(("language", "name"), [("ja", "char"), ("zh", "zh"), ("ko", "13a")])
def test_languages_without_spaces_are_scored_in_characters(tmp_path: Path, language: str, name: str) -> None:
    """As a single word, each sentence would score 0 or 100; the signature names the tokenization.

    Scores by length leave out the ensemble.
    """
    target = ["猫が家で寝ています。", "私は海を見ました。"]
    write_folder(tmp_path / "test", zip(["the cat sleeps", "I saw the sea"], target, strict=True))
    references = read_references(tmp_path / "test", TOKENIZE, ("en", language))
    lines = ["犬が家で寝ています。", "私は海を見ました。"]
    texts = [ScoredText("1", "plain", lines, lines), ScoredText("ensemble", "plain", target, target)]
    evaluate(texts, references, None, tmp_path)
    score = bleu(lines, target, name).value
    assert read_json(tmp_path / "metrics.json")["seeds"]["1"]["bleu"] == round(score, 2)
    assert f"tok:{name}" in read_json(tmp_path / "signatures.json")["bleu"]
    assert (score > 80) == (name != "13a")
    assert pd.read_csv(tmp_path / "by_length.csv")["bleu"].tolist() == [round(score, 2)]
    examples = choose_examples(texts[0], references, 2)
    assert (examples["bleu"] > 60).tolist() == [name != "13a", True]


@pytest.fixture
def computed(tmp_path: Path) -> dict[str, Score]:
    """Every score that the stage evaluate can compute, by name, each of a line of its own."""
    write_folder(tmp_path / "test", [("a cat sleeps", "eine Katze schläft")])
    references = read_references(tmp_path / "test", TOKENIZE, ("en", "de"))
    text = ScoredText("1", "plain", *[["eine Katze"]] * 2)
    return {name: score for rouge in SETTINGS for name, score in score_text(text, references, rouge).items()}


def test_each_score_has_a_row(computed: dict[str, Score]) -> None:
    """One without would be computed, but in no table; one in a model card has a signature."""
    assert computed.keys() == SCORES.keys()
    assert {name for name, score in computed.items() if score.signature} == {
        name for name, kind in SCORES.items() if kind.card
    }


def test_a_new_score_is_shown_everywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes a row, and a line where it is computed. TER is 100 for one wrong word of one."""
    monkeypatch.setitem(SCORES, "ter", ScoreKind("TER", 1, ("TER", "ter"), is_main=True))
    monkeypatch.setitem(DIGITS, "ter", 1)
    monkeypatch.setitem(TITLES, "ter", "TER")
    monkeypatch.setitem(METRICS, "ter", lambda _: TER())
    write_folder(tmp_path / "test", [("a", "b")])
    references = read_references(tmp_path / "test", TOKENIZE, ("en", "de"))
    evaluate([ScoredText("1", "plain", ["c"], ["c"])], references, None, tmp_path)
    metrics = read_json(tmp_path / "metrics.json")
    assert metrics["mean"]["ter"] == 100.0
    assert "tok:tercom" in read_json(tmp_path / "signatures.json")["ter"]
    assert tables.summarize_scores(metrics, [1.0])["TER"] == "100.00"
    shown = scores.format_scores(pd.read_csv(tmp_path / "scores.csv", dtype={"member": str}))
    assert shown["TER"].tolist() == ["100.0"]
    card = model_card.model_card(replace(FACTS, scores={"ter": 42.2}, signatures={"ter": "sig"}))
    assert re.search(r"\| TER +\| 42\.20 \| `sig` +\|", card)
    names = ("one", "two")
    for name in names:
        make_run(tmp_path / name, {}, {"1": GOOD})
    compared = compare_scores([open_run(str(tmp_path / name), tmp_path, tmp_path) for name in names])
    assert [title for title, *_ in compared] == ["BLEU", "chrF2", "TER"]


def test_what_shows_some_scores_names_only_those_that_exist(computed: dict[str, Score]) -> None:
    """One that was renamed would leave a column, or a picture, empty."""
    tables.summarize_scores({"mean": dict.fromkeys(computed, 1.0)}, [1.0])
    figures = {figure.partition(",")[0] for figure in sweep_table.FIGURES}
    assert figures - {"perplexity"} <= computed.keys()
    stage = parse_yaml((ROOT / "dvc.yaml").read_text(encoding="utf-8"), "dvc.yaml")["stages"]["evaluate"]
    plots: dict[str, Any] = {}
    for plot in stage["plots"]:
        plots |= plot if isinstance(plot, dict) else {}
    assert plots["data/evaluation/scores.csv"]["x"] in computed
    by_length = length_table([1], [["a"]], ["a"])
    assert {plots["data/evaluation/by_length.csv"][axis] for axis in "xy"} <= {*by_length.columns}


def test_a_score_without_a_row_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would be computed and signed, and then be in no table."""
    write_folder(tmp_path / "test", [("a", "b")])
    references = read_references(tmp_path / "test", TOKENIZE, ("en", "de"))
    monkeypatch.setattr(evaluation, "score_text", lambda *_: {"bleu": Score(1.0, ""), "ter": Score(2.0, "")})
    with pytest.raises(ValueError, match=r"SCORES in convs2s/score/kinds\.py names, found ter: add a row"):
        evaluate([ScoredText("1", "plain", ["b"], ["b"])], references, None, tmp_path)
