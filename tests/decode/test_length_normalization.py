"""Reranking one search's hypotheses equals another search with that alpha."""

import pytest
import torch

from convs2s.decode.length_normalization import best_alpha, best_hypothesis
from convs2s.decode.translations import Hypothesis
from convs2s.ids.vocabulary import EOS
from convs2s.search.search import final_score
from tests.decode.parrot import make_search
from tests.search.table_model import random_table

ALPHAS = [0.0, 0.3, 0.6, 1.0, 1.5, 2.5]


def hypothesis(text: str, log_likelihood: float) -> Hypothesis:
    """Return a hypothesis of these words; EOS adds one token."""
    words = text.split()
    return Hypothesis([*words, "</s>"], words, log_likelihood, log_likelihood, [], [])


def score_of(hypothesis: Hypothesis, alpha: float) -> float:
    return final_score(hypothesis.log_likelihood, len(hypothesis.tokens), alpha)


def search(beam_size: int, alpha: float, sources: int = 12) -> list[list[tuple[list[int], float, float]]]:
    """Search sentences of a table model; return tokens, log-likelihood and score of the whole beam."""
    source = torch.tensor([[3 + i % 5, 3 + i, EOS] for i in range(sources)])
    found = make_search(beam_size, alpha=alpha).search(random_table(8, 7, 6), source, [7] * sources)
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
        assert ([int(token) for token in best.tokens], score_of(best, alpha)) == (new[0][0], new[0][2])
        assert {tuple(tokens): total for tokens, total, _ in old} == {
            tuple(tokens): total for tokens, total, _ in new
        }


def test_alpha_weighs_length_against_likelihood() -> None:
    """By hand: -2 for 2 tokens and -3 for 4; equal where 2^alpha = 1.5, so at alpha 0.585."""
    short, long = hypothesis("a", -2.0), hypothesis("a b c", -3.0)
    assert [score_of(long, alpha) for alpha in (0.0, 0.5, 1.0)] == [-3.0, -1.5, -0.75]
    assert best_hypothesis([long, short], 0.58) == short
    assert best_hypothesis([long, short], 0.59) == long
    first, second, longer = hypothesis("a", -2.0), hypothesis("b", -2.0), hypothesis("a b c", -4.0)
    assert best_hypothesis([longer, first, second], 1.0) == first  # a tie: the one finished first
    assert final_score(0.0, 0, 1.0) == 0.0  # of an empty sentence, without EOS


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
