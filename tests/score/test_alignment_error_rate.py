"""Alignment error rate by hand."""

import pytest

from convs2s.score.alignment_error_rate import alignment_error_rate


def test_rate_is_one_less_twice_the_common_links_over_all_links() -> None:
    """Of 3 links found and 2 true ones 1 is common, in all pairs together: 1 - 2 * 1 / 5."""
    found = [[(0, 0), (1, 1)], [(0, 1)]]
    true = [[(0, 0)], [(1, 0)]]
    assert alignment_error_rate(found, true) == pytest.approx(0.6)


def test_rate_is_zero_where_all_agree_and_one_where_nothing_does() -> None:
    """The ends of the scale; links are a set, so order and repeats do not matter."""
    assert alignment_error_rate([[(1, 0), (0, 0), (0, 0)]], [[(0, 0), (1, 0)]]) == 0.0
    assert alignment_error_rate([[(0, 1)]], [[(1, 0)]]) == 1.0
    assert alignment_error_rate([[]], [[]]) == 0.0


def test_different_numbers_of_pairs_are_an_error() -> None:
    """A rate over misaligned files would be a wrong number, not a bad one."""
    with pytest.raises(ValueError, match="shorter"):
        alignment_error_rate([[], []], [[]])
