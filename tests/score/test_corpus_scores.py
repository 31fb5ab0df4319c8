"""Scores against values worked out by hand, and errors for unequal or empty input."""

import math
from collections.abc import Callable

import pytest
import sacrebleu

from convs2s.score.corpus_scores import bleu, chrf, tokenized_bleu


def test_bleu_is_brevity_penalty_times_the_geometric_mean_of_precisions() -> None:
    """By hand: 5, 4, 3, 2 of 6, 5, 4, 3 n-grams match; the penalty is for 6 words against 7."""
    by_hand = 100 * math.exp(1 - 7 / 6) * (5 / 6 * 4 / 5 * 3 / 4 * 2 / 3) ** 0.25
    for score in (bleu, tokenized_bleu):
        assert score(["a b c d e x"], ["a b c d e f g"]).value == pytest.approx(by_hand)


def test_detokenized_bleu_splits_punctuation_and_tokenized_bleu_does_not() -> None:
    """13a splits `d.` into two words, of which one matches; in tokenized text it is one wrong word."""
    hypothesis, reference = ["a b c d."], ["a b c d!"]
    assert bleu(hypothesis, reference).value == pytest.approx(100 * (4 / 5 * 3 / 4 * 2 / 3 * 1 / 2) ** 0.25)
    # No 4-gram matches; smoothing counts half a match instead.
    smoothed = 100 * (3 / 4 * 2 / 3 * 1 / 2 * 0.5) ** 0.25
    assert tokenized_bleu(hypothesis, reference).value == pytest.approx(smoothed)


def test_signatures_state_version_and_tokenization() -> None:
    """They record how each figure is computed; without them, scores cannot be compared."""
    expected = {bleu: "case:mixed|eff:no|tok:13a", tokenized_bleu: "case:mixed|eff:no|tok:none"}
    for score, settings in {**expected, chrf: "nc:6|nw:0"}.items():
        signature = score(["a"], ["a"]).signature
        assert settings in signature and f"version:{sacrebleu.__version__}" in signature


@pytest.mark.parametrize("score", [bleu, tokenized_bleu, chrf])
@pytest.mark.parametrize(("hypotheses", "references"), [(["a"], ["a", "b"]), ([], [])])
def test_unequal_or_no_lines_are_refused(
    score: Callable[[list[str], list[str]], object], hypotheses: list[str], references: list[str]
) -> None:
    """SacreBLEU would score only the first lines, which may no longer correspond."""
    expected = f"expected a test set with one reference per hypothesis, found {len(hypotheses)} hypotheses"
    with pytest.raises(ValueError, match=expected):
        score(hypotheses, references)
