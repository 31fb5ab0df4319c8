"""Sampling: samples follow the model's distribution, and depend only on seed and sentence."""

from collections import Counter

import pytest
import torch

from convs2s.decode.sampling import Sampler, Sampling
from convs2s.ids.vocabulary import EOS, PAD, UNK
from convs2s.search.search import SearchResult
from tests.decode.parrot import make_search
from tests.search.table_model import TableModel, probabilities, random_table


def draw(
    model: TableModel,
    source: torch.Tensor,
    sampling: Sampling,
    samples: int = 1,
    max_length: int = 5,
    prefixes: list[list[int]] | None = None,
) -> list[list[SearchResult]]:
    params = make_search(samples).params
    sampler = Sampler(params, False, sampling, [(i, 0) for i in range(len(source))])
    return sampler.search(model, source, [max_length] * len(source), prefixes or ())


@pytest.mark.parametrize(("temperature", "top_k", "wanted"), [
    (1.0, None, {(EOS,): 0.5, (UNK, EOS): 0.3, (3, EOS): 0.2}),
    (0.5, None, {(EOS,): 25 / 38, (UNK, EOS): 9 / 38, (3, EOS): 4 / 38}),
    (1.0, 2, {(EOS,): 0.625, (UNK, EOS): 0.375}),
    (0.5, 1, {(EOS,): 1.0}),
])  # fmt: skip
def test_samples_follow_the_distribution(
    temperature: float, top_k: int | None, wanted: dict[tuple[int, ...], float]
) -> None:
    """4,000 samples agree within 0.04, five standard deviations. Padding is excluded and never drawn."""
    rows = [[0.2, 0.4, 0.24, 0.16]] * 2 + [[0.0, 1.0, 0.0, 0.0]] * 8
    sampling = Sampling(seed=1, temperature=temperature, top_k=top_k)
    found = draw(probabilities(rows), torch.tensor([[3, EOS]] * 80), sampling, 50)
    counts = Counter(tuple(one.tokens) for ranked in found for one in ranked)
    assert counts.total() == 4000
    assert set(counts) == set(wanted)
    for tokens, share in wanted.items():
        assert counts[tokens] / 4000 == pytest.approx(share, abs=0.04)


def test_a_sentence_has_the_same_samples_in_any_batch() -> None:
    """They depend on the seed and the sentence's number; other seeds and numbers give other samples."""
    model = random_table(6, 11, 9)
    source = torch.tensor([[3, 4, EOS], [4, EOS, PAD], [5, EOS, PAD]])
    together = draw(model, source, Sampling(seed=7), samples=4)
    [alone] = draw(model, source[2:, :2], Sampling(seed=7, first=2), samples=4)
    assert alone == together[2]
    assert draw(model, source[2:, :2], Sampling(seed=7, first=3), samples=4) != [alone]
    assert draw(model, source[2:, :2], Sampling(seed=8, first=2), samples=4) != [alone]


def draw_with_prefix(model: TableModel) -> list[SearchResult]:
    """Return 20 samples of a sentence of six tokens, with a prefix and far from the model's distribution."""
    source = torch.tensor([[3, 4, 5, 3, 4, EOS]])
    sampling = Sampling(seed=1, temperature=2.0, top_k=6)
    [ranked] = draw(model, source, sampling, samples=20, max_length=5, prefixes=[[8]])
    return ranked


def test_samples_begin_with_the_prefix_and_end_in_time() -> None:
    """They have at most five tokens and EOS; shorter ones occur, too."""
    ranked = draw_with_prefix(random_table(6, 11, 9))
    assert {one.tokens[0] for one in ranked} == {8}
    assert {len(one.tokens) for one in ranked} >= {3, 4, 6}
    assert max(len(one.tokens) for one in ranked) <= 6


def test_sources_of_samples_are_those_of_a_search() -> None:
    """The table model attends to position i at step i, as in test_beam_search."""
    for one in draw_with_prefix(random_table(6, 11, 9)):
        assert one.sources[:5] == list(range(5))[: len(one.tokens)]


def test_the_likelihood_of_a_sample_is_the_models() -> None:
    """Temperature and top-k change what is drawn, but not how likely the model takes it to be."""
    model = random_table(6, 11, 9)
    ranked = draw_with_prefix(model)
    for one in ranked:
        contexts = [sum([EOS, *one.tokens[:i]]) % 11 for i in range(len(one.tokens))]
        exact = float(model.table[3, contexts].log_softmax(1)[range(len(one.tokens)), one.tokens].sum())
        assert one.log_likelihood == pytest.approx(exact, abs=1e-4)
        assert one.score == pytest.approx(exact / len(one.tokens), abs=1e-4)


def test_samples_are_ranked_by_their_score() -> None:
    """A command that writes a single sample writes the first one."""
    scores = [one.score for one in draw_with_prefix(random_table(6, 11, 9))]
    assert scores == sorted(scores, reverse=True)
