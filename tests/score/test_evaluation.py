"""Evaluation of what the tests of the stage evaluate do not reach."""

import pytest

from convs2s.score.corpus_scores import bleu
from convs2s.score.evaluation import ScoredText, choose_examples, evaluate, tokenize_references
from convs2s.text.words.tokenization import Tokenizer
from tests.decode.parrot import TOKENIZE


@pytest.mark.parametrize(("language", "name"), [("ja", "char"), ("zh", "zh"), ("ko", "13a")])
def test_languages_without_spaces_are_scored_in_characters(language: str, name: str) -> None:
    """As a single word, each sentence would score 0 or 100; the signature names the tokenization.

    Scores by length leave out the ensemble.
    """
    tokenizers = Tokenizer("en", TOKENIZE), Tokenizer(language, TOKENIZE)
    target = ["猫が家で寝ています。", "私は海を見ました。"]
    found = tokenize_references(["the cat sleeps", "I saw the sea"], target, [], *tokenizers)
    lines = ["犬が家で寝ています。", "私は海を見ました。"]
    texts = [ScoredText("1", "plain", lines, lines), ScoredText("ensemble", "plain", target, target)]
    scored = evaluate(texts, found, None)
    score = bleu(lines, target, name).value
    assert scored.metrics["seeds"]["1"]["bleu"] == round(score, 2)  # type: ignore[index]
    assert f"tok:{name}" in scored.signatures["bleu"]
    assert (score > 80) == (name != "13a")
    assert scored.by_length["bleu"].tolist() == [round(score, 2)]
    examples = choose_examples(texts[0], found, 2)
    assert (examples["bleu"] > 60).tolist() == [name != "13a", True]
