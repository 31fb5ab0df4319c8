"""The target tokens selected for a batch (§5.4)."""

import numpy as np

from convs2s.ids.candidates import Candidates
from convs2s.ids.selection import VocabularySelection

# Source token 3 has candidates 10, 11, 12; token 4 has 19.
CANDIDATES = Candidates(np.array([0, 0, 0, 0, 3, 4]), np.array([10, 11, 12, 19], np.int32))


def test_tokens_are_the_special_the_common_and_the_candidates() -> None:
    """They are in ascending order, so special tokens keep their ids; padding and EOS have no candidates."""
    selection = VocabularySelection(CANDIDATES, common=2, most=2, target_size=20)
    assert selection.tokens(np.array([[3, 1, 0], [3, 3, 1]])).tolist() == [0, 1, 2, 3, 4, 10, 11]
    assert selection.tokens(np.array([[4, 1]])).tolist() == [0, 1, 2, 3, 4, 19]
    assert (selection.selected, selection.batches) == (7 + 6, 2)
    assert selection.report() == (
        "vocabulary selection: the output layer had 6 of 20 tokens, averaged over 2 batches"
    )


def test_training_adds_the_target_tokens_of_the_batch() -> None:
    """Otherwise a target word that is not a candidate would have probability 0."""
    selection = VocabularySelection(CANDIDATES, common=0, most=1, target_size=20)
    assert selection.tokens(np.array([[3, 1]]), np.array([[15, 7, 1, 0]])).tolist() == [0, 1, 2, 7, 10, 15]
