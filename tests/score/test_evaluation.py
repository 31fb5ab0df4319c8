"""Evaluation of what the tests of the stage evaluate do not reach."""

from pathlib import Path

import pandas as pd
import pytest

from convs2s.base.files import read_json, write_folder
from convs2s.score.corpus_scores import bleu
from convs2s.score.evaluation import ScoredText, choose_examples, evaluate, read_references
from tests.decode.parrot import TOKENIZE


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
