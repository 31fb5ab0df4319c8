"""Scores against values worked out by hand, and errors for unequal or empty input."""

import math
from collections.abc import Callable

import pytest
import sacrebleu

from convs2s.score.corpus_scores import (
    bleu,
    chrf,
    length_ratio,
    score_system,
    signatures,
    tokenized_bleu,
)

HYPOTHESIS = "a b c d e x"
REFERENCE = "a b c d e f g"
# 5, 4, 3, 2 of 6, 5, 4, 3 n-grams match; the brevity penalty of 6 words against 7 is exp(1 - 7/6).
BY_HAND = 100 * math.exp(1 - 7 / 6) * (5 / 6 * 4 / 5 * 3 / 4 * 2 / 3) ** 0.25


def test_bleu_is_brevity_penalty_times_the_geometric_mean_of_precisions() -> None:
    """The formula of Papineni et al., on words that no tokenizer changes."""
    assert bleu([HYPOTHESIS], [REFERENCE]).value == pytest.approx(BY_HAND)
    assert tokenized_bleu([HYPOTHESIS], [REFERENCE]).value == pytest.approx(BY_HAND)


def test_bleu_pools_counts_over_the_corpus() -> None:
    """Precisions are over all sentences together, so BLEU is not a mean of sentence scores."""
    score = bleu([HYPOTHESIS, "p q r s"], [REFERENCE, "p q r s"]).value
    precisions = 9 / 10 * 7 / 8 * 5 / 6 * 3 / 4
    assert score == pytest.approx(100 * math.exp(1 - 11 / 10) * precisions**0.25)


def test_detokenized_bleu_splits_punctuation_and_tokenized_bleu_does_not() -> None:
    """13a splits `d.` into two words, of which one matches; in tokenized text it is one wrong word."""
    hypothesis, reference = ["a b c d."], ["a b c d!"]
    assert bleu(hypothesis, reference).value == pytest.approx(100 * (4 / 5 * 3 / 4 * 2 / 3 * 1 / 2) ** 0.25)
    # No 4-gram matches; smoothing counts half a match instead.
    smoothed = 100 * (3 / 4 * 2 / 3 * 1 / 2 * 0.5) ** 0.25
    assert tokenized_bleu(hypothesis, reference).value == pytest.approx(smoothed)


def test_chrf_is_the_f2_score_of_character_n_grams() -> None:
    """`ab` against `ac`: 1 of 2 unigrams and 0 of 1 bigrams match; there are no longer n-grams."""
    assert chrf(["ab"], ["ac"]).value == pytest.approx(100 * 0.25)
    # P = 2/2, R = 2/4; bigrams 1/1, 1/3: mean P = 1, mean R = 5/12, over the orders that both sides have.
    precision, recall = 1.0, (2 / 4 + 1 / 3) / 2
    wanted = 100 * 5 * precision * recall / (4 * precision + recall)
    assert chrf(["ab"], ["abcd"]).value == pytest.approx(wanted)


def test_signatures_state_version_and_tokenization() -> None:
    """They record how each figure is computed; without them, scores cannot be compared."""
    found = signatures()
    assert list(found) == ["bleu", "bleu_tokenized", "chrf"]
    assert all(f"version:{sacrebleu.__version__}" in signature for signature in found.values())
    assert "case:mixed|eff:no|tok:13a" in found["bleu"]
    assert "case:mixed|eff:no|tok:none" in found["bleu_tokenized"]
    assert "nc:6|nw:0" in found["chrf"]


def test_a_system_is_scored_on_both_forms_of_its_text() -> None:
    """Each score uses the form it is meant for; `<unk>` counts only as a whole word."""
    scores = score_system(["x <unk>y"], ["<unk> a <unk> x<unk>"], ["x"], ["a b"])
    assert scores.unknown_words == 2
    assert scores.length_ratio == 2.0
    assert scores.chrf == chrf(["x <unk>y"], ["x"]).value
    assert scores.bleu_tokenized == tokenized_bleu(["<unk> a <unk> x<unk>"], ["a b"]).value
    assert scores.bleu == bleu(["x <unk>y"], ["x"]).value


@pytest.mark.parametrize("score", [bleu, tokenized_bleu, chrf, length_ratio])
@pytest.mark.parametrize(("hypotheses", "references"), [(["a"], ["a", "b"]), ([], [])])
def test_unequal_or_no_lines_are_refused(
    score: Callable[[list[str], list[str]], object], hypotheses: list[str], references: list[str]
) -> None:
    """SacreBLEU would score only the first lines, which may no longer correspond."""
    expected = f"expected a test set with one reference per hypothesis, found {len(hypotheses)} hypothes[ei]s"
    with pytest.raises(ValueError, match=expected):
        score(hypotheses, references)
