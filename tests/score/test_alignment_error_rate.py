"""Alignment error rate, worked out by hand."""

import pytest

from convs2s.score.alignment_error_rate import alignment_error_rate


def test_rate_is_one_minus_twice_the_common_links_over_all_links() -> None:
    """Over both pairs, 1 link is common to the 3 found and the 2 true ones: 1 - 2 * 1 / 5."""
    found = [[(0, 0), (1, 1)], [(0, 1)]]
    true = [[(0, 0)], [(1, 0)]]
    assert alignment_error_rate(found, true) == pytest.approx(0.6)


def test_rate_is_zero_if_all_links_agree_and_one_if_none_do() -> None:
    """These are the ends of the scale; links are a set, so order and repeats do not matter."""
    assert alignment_error_rate([[(1, 0), (0, 0), (0, 0)]], [[(0, 0), (1, 0)]]) == 0.0
    assert alignment_error_rate([[(0, 1)]], [[(1, 0)]]) == 1.0
    assert alignment_error_rate([[]], [[]]) == 0.0


def test_different_numbers_of_pairs_are_an_error() -> None:
    """With misaligned files, any rate would be meaningless."""
    with pytest.raises(ValueError, match="shorter"):
        alignment_error_rate([[], []], [[]])
