"""Reranking one search's hypotheses equals another search with that alpha, with some exceptions."""

import json
from pathlib import Path

import pytest
import torch

from convs2s.decode.beam_search import BeamSearch
from convs2s.decode.length_normalization import best_alpha, best_hypothesis, final_score
from convs2s.decode.translations import Hypothesis
from convs2s.text.vocabulary.vocabulary import EOS
from tests.decode.parrot import word_parrot, write_word_vocabulary
from tests.decode.table_model import random_table

ALPHAS = [0.0, 0.3, 0.6, 1.0, 1.5, 2.5]


def hypothesis(text: str, log_likelihood: float) -> Hypothesis:
    """Return a hypothesis of these words; EOS adds one token."""
    words = text.split()
    return Hypothesis([*words, "</s>"], words, log_likelihood, log_likelihood, [], [])


def search(beam_size: int, alpha: float, sources: int = 12) -> list[list[tuple[list[int], float, float]]]:
    """Search sentences of a table model; return tokens, log-likelihood and score of the whole beam."""
    source = torch.tensor([[3 + i % 5, 3 + i, EOS] for i in range(sources)])
    found = BeamSearch(beam_size, alpha, 0, beam_size, legacy_eos=False, keep_attention=False).search(
        random_table(8, 7, 6), source, [7] * sources
    )
    return [[(h.tokens, h.log_likelihood, h.score) for h in ranked] for ranked in found]


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("searched_with", [0.0, 1.0])
def test_reranking_equals_another_search(alpha: float, searched_with: float) -> None:
    """The search compares only likelihoods, so alpha does not change its results; scores agree exactly."""
    for old, new in zip(search(4, searched_with), search(4, alpha), strict=True):
        hypotheses = [
            Hypothesis([str(t) for t in tokens], [], total, score, [], []) for tokens, total, score in old
        ]
        best = best_hypothesis(hypotheses, alpha)
        assert ([int(token) for token in best.tokens], final_score(best, alpha)) == (new[0][0], new[0][2])
        assert {tuple(tokens): total for tokens, total, _ in old} == {
            tuple(tokens): total for tokens, total, _ in new
        }


def test_another_alpha_may_rank_another_first() -> None:
    """Otherwise the test above, and tuning, would be pointless."""
    assert len({json.dumps([ranked[0][0] for ranked in search(4, alpha)]) for alpha in ALPHAS}) > 1


def test_fewer_hypotheses_than_the_beam_may_lack_the_best() -> None:
    """The whole beam is kept because the best hypothesis with alpha 0 is not always the best with 2.5."""
    lost = [old[0][0] != new[0][0] for old, new in zip(search(4, 0.0), search(4, 2.5), strict=True)]
    assert any(lost)


def test_alpha_weighs_length_against_likelihood() -> None:
    """By hand: -2 for 2 tokens and -3 for 4; equal where 2^alpha = 1.5, so at alpha 0.585."""
    short, long = hypothesis("a", -2.0), hypothesis("a b c", -3.0)
    assert [final_score(long, alpha) for alpha in (0.0, 0.5, 1.0)] == [-3.0, -1.5, -0.75]
    assert best_hypothesis([long, short], 0.58) == short
    assert best_hypothesis([long, short], 0.59) == long


def test_on_a_tie_the_one_finished_first_wins() -> None:
    """This is as in the search; among equal lengths, the one listed first wins."""
    first, second, longer = hypothesis("a", -2.0), hypothesis("b", -2.0), hypothesis("a b c", -4.0)
    assert best_hypothesis([longer, first, second], 1.0) == first


def test_the_empty_sentence_has_a_score() -> None:
    """It has no tokens, not even EOS."""
    empty = Hypothesis([], [], 0.0, 0.0, [], [])
    assert best_hypothesis([empty], 1.0) == empty
    assert final_score(empty, 1.0) == 0.0


@pytest.mark.parametrize(
    ("scores", "wanted"),
    [
        ({0.0: 1.0, 0.5: 3.0, 1.0: 2.0}, 0.5),
        ({0.0: 3.0, 0.8: 3.0, 1.5: 3.0, 2.0: 1.0}, 0.8),
        ({1.25: 3.0, 0.75: 3.0}, 0.75),
        ({2.0: 0.0}, 2.0),
    ],
)
def test_the_best_alpha_is_the_nearest_to_one_of_equals(scores: dict[float, float], wanted: float) -> None:
    """If the choice makes no difference, prefer the mean over tokens."""
    assert best_alpha(scores) == wanted


def test_parts_of_a_long_sentence_are_joined_by_rank(tmp_path: Path) -> None:
    """There the joined sentence is reranked, with its total likelihood and number of tokens."""
    translator = word_parrot(write_word_vocabulary(tmp_path / "vocabulary"), limit=6, n_best=2)
    words = ["Das", "ist", "ein", "Haus", ".", "und", "noch", "eins", ",", "und", "Hund", "."]
    with pytest.warns(UserWarning, match="translated in parts"):
        [found] = translator.translate([words], keep_attention=False)
    best = best_hypothesis(found, 1.0)
    assert best == found[0]
    assert final_score(best, 0.0) == best.log_likelihood
    parts = -(-len(words) // 5)
    assert len(best.tokens) == len(words) + 1
    # A score of the search counts the EOS of each part; here the sentence has one.
    assert best.score == pytest.approx(best.log_likelihood / (len(words) + parts))
