"""Beam search, on host and device, against tables, an exhaustive search and the rule written out."""

import itertools

import pytest
import torch

from convs2s.config.translate import SearchPlace
from convs2s.ids.vocabulary import EOS, PAD
from convs2s.search.beam_search import BeamSearch
from convs2s.search.search import NOWHERE, SearchResult
from convs2s.search.token_scores import log_normalizer
from tests.decode.parrot import make_search
from tests.search.table_model import TableModel, random_table

KINDS: list[SearchPlace] = ["host", "device"]


def found(hypotheses: list[SearchResult]) -> list[tuple[list[int], float]]:
    return [(h.tokens, round(h.score, 4)) for h in hypotheses]


def written_out(
    search: BeamSearch, model: TableModel, source: int, max_length: int
) -> list[tuple[list[int], float]]:
    """Search one sentence with plain lists, following the rule of T21 literally."""
    params = search.params
    beam = params.beam_size
    live = [(0.0, list[int]())]
    done = list[tuple[float, list[int]]]()
    for step in itertools.count():
        candidates = []
        for total, tokens in live:
            context = (EOS + sum(tokens)) % model.table.shape[1]
            for token, p in enumerate(torch.log_softmax(model.table[source, context], dim=0).tolist()):
                allowed = token == EOS if step >= max_length else token != EOS or step >= params.min_length
                if token != PAD and allowed:
                    candidates.append((total + p, [*tokens, token]))
        candidates = sorted(candidates, key=lambda c: -c[0])[: 2 * beam]
        for total, tokens in candidates if params.legacy_eos else candidates[:beam]:
            if tokens[-1] == EOS and len(done) < beam:
                done.append((total / len(tokens) ** params.alpha, tokens))
        if len(done) == beam or step == max_length:
            return [(tokens, round(score, 4)) for score, tokens in sorted(done, key=lambda d: -d[0])]
        live = [c for c in candidates if c[1][-1] != EOS][:beam]
    raise AssertionError


@pytest.mark.parametrize(
    ("beam", "max_length", "min_length", "entries", "alpha"),
    [
        (1, 8, 0, 9, 1.0),
        (2, 8, 0, 9, 0.0),
        (3, 8, 0, 9, 0.7),
        (5, 8, 0, 9, 2.0),
        (4, 5, 3, 9, 1.0),  # EOS is ruled out below min_length and forced at max_length
        (1, 2, 9, 9, 1.0),  # a position table may hold fewer tokens than min_length
        (8, 2, 0, 3, 1.0),  # a vocabulary smaller than the beam: its other rows stay impossible
        (15, 3, 0, 4, 1.0),  # with room for every sequence, the search is exhaustive
    ],
)
@pytest.mark.parametrize("legacy", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_search_follows_the_rule_written_out(
    kind: SearchPlace,
    beam: int,
    max_length: int,
    min_length: int,
    entries: int,
    alpha: float,
    legacy: bool,
) -> None:
    """An independent search of one sentence at a time gives the same tokens and scores (§4.3)."""
    model = random_table(12, 11, entries)
    source = torch.tensor([[s, 3, EOS] for s in range(3, 12)])
    search = make_search(beam, place=kind, alpha=alpha, min_length=min_length, legacy_eos=legacy)
    for s, hypotheses in enumerate(search.search(model, source, [max_length] * 9), start=3):
        assert found(hypotheses) == written_out(search, model, s, max_length)


# Each sentence leaves at once, none before all are done; or at looks of the host, each step or later.
@pytest.mark.parametrize(
    ("kind", "idle", "steps"),
    [("host", 0.0, 1), ("host", 1.0, 1), ("device", 0.0, 1), ("device", 0.0, 3), ("device", 0.5, 3)],
)
@pytest.mark.parametrize("legacy", [False, True])
@pytest.mark.parametrize("beam", [1, 3])
def test_a_sentence_does_not_depend_on_its_batch(
    kind: SearchPlace, beam: int, legacy: bool, idle: float, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lengths, limits, prefixes and finishing steps differ; finished ones gain nothing while waiting."""
    monkeypatch.setattr("convs2s.search.search.IDLE_SHARE", idle)
    monkeypatch.setattr("convs2s.search.beam_search.STEPS_ON_DEVICE", steps)
    model = random_table(12, 11, 9)
    sentences = [[s, *[3] * n, EOS] for n, s in enumerate([4, 9, 5, 11, 3, 8, 7])]
    limits = [2, 9, 4, 0, 7, 12, 3]
    prefixes = [[], [7, 7, 3], [8], [], [], [5], [4, 5, 6]]
    width = max(map(len, sentences))
    padded = torch.tensor([row + [PAD] * (width - len(row)) for row in sentences])
    search = make_search(beam, place=kind, legacy_eos=legacy, keep_attention=True)
    together = search.search(model, padded, limits, prefixes)
    for row, limit, prefix, batched in zip(sentences, limits, prefixes, together, strict=True):
        [alone] = search.search(model, torch.tensor([row]), [limit], [prefix])
        for a, b in zip(alone, batched, strict=True):
            assert (a.tokens, a.score, a.sources, a.at_end) == (b.tokens, b.score, b.sources, b.at_end)
            assert a.tokens[: len(prefix)] == prefix
            assert a.attention is not None
            assert b.attention is not None
            assert a.attention.shape == (len(a.tokens), len(row))
            assert (a.attention == b.attention).all()
    assert [one.tokens for one in together[-1]] == [[4, 5, 6, EOS]]  # as long as allowed


@pytest.mark.parametrize("kind", KINDS)
def test_sources_exclude_eos_and_record_it(kind: SearchPlace) -> None:
    """The table model attends to 0, 1, 2, 0, ...; 2 is EOS, so the best word replaces it (T34)."""
    table = torch.zeros(4, 1, 5)
    table[3, 0] = torch.tensor([0.0, -9.0, 0.0, 0.0, 5.0])
    search = make_search(1, place=kind, keep_attention=True)
    [[best]] = search.search(TableModel(table), torch.tensor([[3, 2, EOS]]), [3])
    assert best.tokens == [4, 4, 4, EOS]
    assert best.sources == [0, 1, 0, 0]  # at the third token both words get 1/6, and the first one counts
    assert best.at_end == [False, False, True, False]
    assert best.attention is not None
    torch.testing.assert_close(torch.tensor(best.attention[1]), torch.tensor([1 / 6, 4 / 6, 1 / 6]))
    [[best]] = make_search(1, place=kind).search(
        random_table(4, 7, 5), torch.tensor([[EOS]]), [2]
    )  # without words
    assert set(best.sources) == {NOWHERE}


@pytest.mark.parametrize("kind", KINDS)
def test_nan_scores_stop_the_search(kind: SearchPlace) -> None:
    """A diverged model must not produce a translation."""
    table = random_table(4, 7, 5).table
    table[3] = torch.nan
    with pytest.raises(ValueError, match=r"token 1 of sentence 2 of the batch are not numbers \(NaN\)"):
        make_search(2, place=kind).search(TableModel(table), torch.tensor([[2, EOS], [3, EOS]]), [4, 4])


def test_log_normalizer_is_logsumexp_at_any_magnitude() -> None:
    """The shortcut via softmax must neither overflow nor lose precision when all logits are equal."""
    n = torch.arange(40 * 9000).view(40, 9000)
    logits = torch.cat([torch.sin(n * 0.7), 80 * torch.cos(n * 0.3), torch.full((3, 9000), 1e4)])
    torch.testing.assert_close(log_normalizer(logits), torch.logsumexp(logits.double(), 1).float())
