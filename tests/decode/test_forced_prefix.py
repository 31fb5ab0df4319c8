"""Beam search with prefixes: against hand-made tables, and against all hypotheses of a free search."""

import math

import pytest
import torch

from convs2s.decode.beam_search import BeamSearch
from convs2s.text.vocabulary.vocabulary import EOS, PAD, UNK
from tests.decode.table_model import probabilities, random_table


def searcher(beam_size: int) -> BeamSearch:
    return BeamSearch(beam_size, 1.0, 0, beam_size, legacy_eos=False, keep_attention=False)


def test_the_likelihood_of_a_prefix_counts() -> None:
    """UNK has 0.1 against 0.6 for 3; after it, EOS has 0.9. All are the model's own probabilities."""
    rows = [[0.1, 0.2, 0.3, 0.4]] * 8
    rows[EOS] = [0.1, 0.2, 0.1, 0.6]
    rows[EOS + UNK] = [0.02, 0.9, 0.04, 0.04]
    [[best, *_]] = searcher(2).search(probabilities(rows), torch.tensor([[3, EOS]]), [5], [[UNK]])
    assert best.tokens == [UNK, EOS]
    assert best.log_likelihood == pytest.approx(math.log(0.1 * 0.9), abs=1e-6)


def test_the_search_goes_on_freely_after_a_prefix() -> None:
    """A beam with room for every hypothesis of up to two tokens finds those with the prefix, in order."""
    model, source = random_table(4, 7, 5), torch.tensor([[3, EOS]])
    [free] = searcher(40).search(model, source, [2])
    [forced] = searcher(40).search(model, source, [2], [[4]])
    wanted = [(one.tokens, round(one.score, 4)) for one in free if one.tokens[0] == 4]
    assert len(wanted) == 4
    assert [(one.tokens, round(one.score, 4)) for one in forced] == wanted


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
