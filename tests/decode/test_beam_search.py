"""Beam search against hand-made tables, an exhaustive search, and a literal version of the rule."""

import itertools
import math

import pytest
import torch

from convs2s.decode.beam_search import BeamSearch
from convs2s.decode.finished import NOWHERE, SearchResult
from convs2s.decode.token_scores import log_normalizer
from convs2s.text.vocabulary.vocabulary import EOS, PAD, UNK
from tests.decode.table_model import TableModel, probabilities, random_table


def searcher(
    beam_size: int,
    *,
    alpha: float = 1.0,
    min_length: int = 0,
    n_best: int | None = None,
    legacy_eos: bool = False,
    keep_attention: bool = False,
) -> BeamSearch:
    return BeamSearch(beam_size, alpha, min_length, n_best or beam_size, legacy_eos, keep_attention)


def found(hypotheses: list[SearchResult]) -> list[tuple[list[int], float]]:
    return [(h.tokens, round(h.score, 4)) for h in hypotheses]


def next_log_probabilities(model: TableModel, source: int, tokens: tuple[int, ...]) -> list[float]:
    context = (EOS + sum(tokens)) % model.table.shape[1]
    return [float(p) for p in torch.log_softmax(model.table[source, context], dim=0)]


def written_out(
    model: TableModel, source: int, beam: int, max_length: int, min_length: int = 0, legacy: bool = False
) -> list[tuple[list[int], float]]:
    """Search one sentence with plain lists, following the rule of T21 literally."""
    live: list[tuple[float, tuple[int, ...]]] = [(0.0, ())]
    done: list[tuple[float, list[int]]] = []
    for step in itertools.count():
        candidates = []
        for total, tokens in live:
            for token, p in enumerate(next_log_probabilities(model, source, tokens)):
                allowed = token == EOS if step >= max_length else token != EOS or step >= min_length
                if token != PAD and allowed:
                    candidates.append((total + p, (*tokens, token)))
        candidates = sorted(candidates, key=lambda c: -c[0])[: 2 * beam]
        for total, tokens in candidates if legacy else candidates[:beam]:
            if tokens[-1] == EOS and len(done) < beam:
                done.append((total / len(tokens), list(tokens)))
        if len(done) == beam or step == max_length:
            return [(tokens, round(score, 4)) for score, tokens in sorted(done, key=lambda d: -d[0])]
        live = [c for c in candidates if c[1][-1] != EOS][:beam]
    raise AssertionError


@pytest.mark.parametrize("alpha", [0.0, 0.7, 1.0, 2.0])
def test_score_is_log_likelihood_over_length_to_alpha(alpha: float) -> None:
    """|y| counts EOS (§4.3)."""
    for h in searcher(4, alpha=alpha).search(random_table(4, 7, 6), torch.tensor([[3, 2, EOS]]), [6])[0]:
        assert h.score == pytest.approx(h.log_likelihood / len(h.tokens) ** alpha)


def test_a_beam_as_wide_as_the_space_finds_the_best_of_all() -> None:
    """With room for every sequence, the search is exhaustive and must find the overall best."""
    model, max_length = random_table(4, 7, 4), 3
    sequences = [
        (*middle, EOS) for n in range(max_length + 1) for middle in itertools.product((UNK, 3), repeat=n)
    ]

    def score(tokens: tuple[int, ...]) -> float:
        parts = [next_log_probabilities(model, 3, tokens[:i])[token] for i, token in enumerate(tokens)]
        return sum(parts) / len(parts)

    best = max(sequences, key=score)
    [hypotheses] = searcher(len(sequences)).search(model, torch.tensor([[3, EOS]]), [max_length])
    assert hypotheses[0].tokens == list(best)
    assert hypotheses[0].score == pytest.approx(score(best), abs=1e-5)
    assert len(hypotheses) == len(sequences)


@pytest.mark.parametrize("legacy", [False, True])
@pytest.mark.parametrize("beam", [1, 2, 3, 5])
def test_search_follows_the_rule_written_out(beam: int, legacy: bool) -> None:
    """An independent search of one sentence at a time gives the same tokens and scores."""
    model = random_table(12, 11, 9)
    source = torch.tensor([[s, 3, EOS] for s in range(3, 12)])
    results = searcher(beam, legacy_eos=legacy).search(model, source, [8] * 9)
    for s, hypotheses in zip(range(3, 12), results, strict=True):
        assert found(hypotheses) == written_out(model, s, beam, 8, legacy=legacy)


def test_a_sentence_does_not_depend_on_its_batch() -> None:
    """Lengths, limits and finishing steps differ, so rows are compacted at different times."""
    model = random_table(12, 11, 9)
    sentences = [[s, *[3] * n, EOS] for n, s in enumerate([4, 9, 5, 11, 3, 8, 7])]
    limits = [2, 9, 4, 0, 7, 12, 3]
    width = max(map(len, sentences))
    padded = torch.tensor([row + [PAD] * (width - len(row)) for row in sentences])
    search = searcher(3, keep_attention=True)
    together = search.search(model, padded, limits)
    for row, limit, batched in zip(sentences, limits, together, strict=True):
        [alone] = search.search(model, torch.tensor([row]), [limit])
        for a, b in zip(alone, batched, strict=True):
            assert (a.tokens, a.score, a.sources, a.at_end) == (b.tokens, b.score, b.sources, b.at_end)
            assert a.attention is not None
            assert b.attention is not None
            assert a.attention.shape == (len(a.tokens), len(row))
            assert (a.attention == b.attention).all()


@pytest.mark.parametrize("legacy", [False, True])
@pytest.mark.parametrize("beam", [1, 3])
def test_waiting_for_others_changes_nothing(beam: int, legacy: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sentences leave in blocks; finished ones gain no hypotheses while waiting, even if cut off."""
    model = random_table(12, 11, 9)
    source = torch.tensor([[s, 3, EOS] for s in range(3, 12)])
    search = searcher(beam, legacy_eos=legacy, keep_attention=True)
    results = []
    for share in (0.0, 1.0):  # each leaves at once; none leaves before all are done
        monkeypatch.setattr("convs2s.decode.finished.IDLE_SHARE", share)
        batch = search.search(model, source, [8, 1, 4, 0, 8, 2, 1, 5, 3])
        results.append(
            [[(h.tokens, h.score, h.sources, h.at_end) for h in hypotheses] for hypotheses in batch]
        )
    assert results[0] == results[1]


def test_limits_hold_for_every_hypothesis() -> None:
    """EOS is ruled out below min_length and forced at max_length; neither counts EOS."""
    model = random_table(12, 11, 9)
    source = torch.tensor([[s, EOS] for s in range(3, 12)])
    results = searcher(4, min_length=3).search(model, source, [5] * 9)
    for s, hypotheses in zip(source[:, 0], results, strict=True):
        assert {len(h.tokens) - 1 for h in hypotheses} <= {3, 4, 5}
        assert all(h.tokens[-1] == EOS and EOS not in h.tokens[:-1] for h in hypotheses)
        assert found(hypotheses) == written_out(model, int(s), 4, 5, min_length=3)


def test_the_maximum_length_takes_precedence_over_the_minimum() -> None:
    """A position table may hold fewer tokens than min_length: the sentence must end there."""
    [[best]] = searcher(1, min_length=9).search(random_table(4, 7, 5), torch.tensor([[3, EOS]]), [2])
    assert len(best.tokens) == 3


def test_a_vocabulary_smaller_than_the_beam_is_no_error() -> None:
    """Only two tokens can begin a hypothesis, but the beam holds eight: the other rows stay impossible."""
    [hypotheses] = searcher(8).search(random_table(4, 7, 3), torch.tensor([[3, EOS]]), [2])
    assert sorted(h.tokens for h in hypotheses) == [[EOS], [UNK, EOS], [UNK, UNK, EOS]]


def test_equal_scores_are_ordered_by_row() -> None:
    """Both continuations are equally likely; the earlier row, whose EOS comes first, always wins."""
    rows = [[0.25, 0.25, 0.25, 0.25]] * 5
    search = searcher(2, n_best=2)
    first = found(search.search(probabilities(rows), torch.tensor([[3, EOS]]), [3])[0])
    batch = search.search(probabilities(rows), torch.tensor([[3, EOS]] * 5), [3] * 5)
    assert [found(hypotheses) for hypotheses in batch] == [first] * 5


def test_sources_exclude_eos_and_record_it() -> None:
    """The table model attends to 0, 1, 2, 0, ...; 2 is EOS, so the best word replaces it (T34)."""
    table = torch.zeros(4, 1, 5)
    table[3, 0] = torch.tensor([0.0, -9.0, 0.0, 0.0, 5.0])
    [[best]] = searcher(1, keep_attention=True).search(TableModel(table), torch.tensor([[3, 2, EOS]]), [3])
    assert best.tokens == [4, 4, 4, EOS]
    assert best.sources == [0, 1, 0, 0]  # at the third token both words get 1/6, and the first one counts
    assert best.at_end == [False, False, True, False]
    assert best.attention is not None
    torch.testing.assert_close(torch.tensor(best.attention[1]), torch.tensor([1 / 6, 4 / 6, 1 / 6]))


def test_a_source_without_words_has_no_source_position() -> None:
    """EOS is the only position to attend to."""
    [[best]] = searcher(1).search(random_table(4, 7, 5), torch.tensor([[EOS]]), [2])
    assert set(best.sources) == {NOWHERE}


def test_nan_scores_stop_the_search() -> None:
    """A diverged model must not produce a translation."""
    table = random_table(4, 7, 5).table
    table[3] = torch.nan
    with pytest.raises(ValueError, match=r"token 1 of sentence 2 of the batch are not numbers \(NaN\)"):
        searcher(2).search(TableModel(table), torch.tensor([[2, EOS], [3, EOS]]), [4, 4])


def test_log_normalizer_is_logsumexp_at_any_magnitude() -> None:
    """The shortcut via softmax must neither overflow nor lose precision when all logits are equal."""
    n = torch.arange(40 * 9000).view(40, 9000)
    logits = torch.cat([torch.sin(n * 0.7), 80 * torch.cos(n * 0.3), torch.full((3, 9000), 1e4)])
    torch.testing.assert_close(log_normalizer(logits), torch.logsumexp(logits.double(), 1).float())


def test_the_likelihood_of_a_prefix_counts() -> None:
    """UNK has 0.1 against 0.6 for 3; after it, EOS has 0.9. All are the model's own probabilities."""
    rows = [[0.1, 0.2, 0.3, 0.4]] * 8
    rows[EOS] = [0.1, 0.2, 0.1, 0.6]
    rows[EOS + UNK] = [0.02, 0.9, 0.04, 0.04]
    [[best, *_]] = searcher(2).search(probabilities(rows), torch.tensor([[3, EOS]]), [5], [[UNK]])
    assert best.tokens == [UNK, EOS]
    assert best.log_likelihood == pytest.approx(math.log(0.1 * 0.9), abs=1e-6)


def test_prefixes_of_a_batch_do_not_touch_each_other() -> None:
    """Prefixes of different lengths, or empty ones, give the same as if each sentence were alone."""
    model = random_table(6, 11, 9)
    source = torch.tensor([[3, 4, EOS], [4, EOS, PAD], [5, EOS, PAD]])
    prefixes = [[7, 7, 3], [], [8]]
    together = searcher(3).search(model, source, [6, 5, 4], prefixes)
    for i, (row, limit) in enumerate(zip(([3, 4, EOS], [4, EOS], [5, EOS]), (6, 5, 4), strict=True)):
        [alone] = searcher(3).search(model, torch.tensor([row]), [limit], [prefixes[i]])
        assert [one.tokens for one in together[i]] == [one.tokens for one in alone]
        assert all(one.tokens[: len(prefixes[i])] == prefixes[i] for one in alone)


def test_a_prefix_as_long_as_allowed_is_all_there_is() -> None:
    """EOS is forced right after it."""
    [ranked] = searcher(2).search(random_table(4, 7, 6), torch.tensor([[3, EOS]]), [2], [[5, 4]])
    assert [one.tokens for one in ranked] == [[5, 4, EOS]]
