"""Scores of given translations: by hand, and against a search that finds the same ones."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch

from convs2s.decode.beam_search import BeamSearch
from convs2s.decode.forced_decoding import log_likelihoods, score_given
from convs2s.ids.vocabulary import EOS, PAD
from tests.decode.parrot import word_parrot, write_word_vocabulary
from tests.decode.table_model import random_table


def test_what_a_search_finds_has_the_score_of_the_search() -> None:
    """This holds for all hypotheses, in a batch with padding on both sides."""
    model = random_table(6, 11, 9)
    source = torch.tensor([[3, 4, EOS], [4, EOS, PAD]])
    search = BeamSearch(4, 1.0, 0, 4, legacy_eos=False, keep_attention=False)
    for ranks in zip(*search.search(model, source, [6, 5]), strict=True):
        width = max(len(one.tokens) for one in ranks)
        target = torch.tensor([one.tokens + [PAD] * (width - len(one.tokens)) for one in ranks])
        wanted = [one.log_likelihood for one in ranks]
        np.testing.assert_allclose(log_likelihoods(model, source, target), wanted, atol=1e-4)


def test_pairs_are_scored_in_their_order(tmp_path: Path) -> None:
    """The parrot gives each repeated token probability near 1, and any other exp(-20) of that."""
    pairs = [("ein", "ein"), ("ein Hund und Haus", "ein Hund und Haus"), ("Das", "ein"), ("", "")]
    done: list[int] = []
    found = score_given(
        word_parrot(write_word_vocabulary(tmp_path), batch_sentences=2),
        [source.split() for source, _ in pairs],
        [target.split() for _, target in pairs],
        done.append,
    )
    np.testing.assert_allclose([one.log_likelihood for one in found], [0, 0, -20, 0], atol=1e-5)
    assert [one.tokens for one in found] == [2, 5, 2, 1]
    assert [round(one.score, 4) for one in found] == [0, 0, -10, 0]
    assert done == [2, 2]


def test_a_pair_that_is_too_long_has_no_score(tmp_path: Path) -> None:
    """A table of 4 holds 3 words and EOS; the others are scored, with one warning."""
    translator = word_parrot(write_word_vocabulary(tmp_path), limit=4)
    short, long = ["ein"] * 3, ["ein"] * 4
    with pytest.warns(
        UserWarning, match=r"2 sentence pairs longer than the model's position table"
    ) as caught:
        found = score_given(translator, [short, long, short], [short, short, long])
    assert len(caught) == 1
    assert [math.isnan(one.log_likelihood) for one in found] == [False, True, True]
