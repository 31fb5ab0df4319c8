"""The choice of links; `test_fast_align` compares the posteriors themselves with a plain reference."""

import numpy as np
import pytest

from convs2s.text.alignment.posteriors import Posteriors, choose_pairs
from convs2s.text.alignment.word_ids import Chunk

# One pair of two source words, 0 and 1, and one target word, 0.
CHUNK = Chunk(np.array([0, 1], np.int32), np.array([0, 2]), np.array([0], np.int32), np.array([0, 1]))


def posteriors(words: list[float], nulls: list[float]) -> Posteriors:
    return Posteriors(np.array(words, np.float32), np.array(nulls, np.float32), np.zeros((1, 2)))


@pytest.mark.parametrize(
    ("words", "null", "wanted"),
    [
        ([0.2, 0.5], 0.3, 1),
        ([0.5, 0.2], 0.3, 0),
        ([0.4, 0.4], 0.2, 0),  # of two equal words, the leftmost
        ([0.25, 0.375], 0.375, -1),  # of a word and an equal null word, the null word
        ([0.1, 0.2], 0.7, -1),
    ],
)
def test_the_most_probable_word_is_chosen(words: list[float], null: float, wanted: int) -> None:
    """Repeated words often tie; fast_align breaks ties this way, and a fixed rule is reproducible."""
    source_of, target_of = np.full(1, -9, np.int32), np.full(2, -9, np.int32)
    forward, backward = posteriors(words, [null]), posteriors([0.6, 0.4], [0.4, 0.6])
    choose_pairs(0, 1, CHUNK, np.array([0, 2]), forward, backward, source_of, target_of)
    assert source_of.tolist() == [wanted]
    assert target_of.tolist() == [0, -1]
