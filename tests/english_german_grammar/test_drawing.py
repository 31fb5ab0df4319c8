from collections import Counter
from random import Random

import pytest

from convs2s.english_german_grammar.drawing import TABLE_SIZE, below, chance, draw, spread, zipf


def test_spread_gives_each_item_its_share() -> None:
    """An item with weight 3 of 4 gets 3/4 of the entries."""
    table = spread([("a", 3), ("b", 1)])
    assert Counter(table) == {"a": TABLE_SIZE * 3 // 4, "b": TABLE_SIZE // 4}


def test_spread_fills_the_table_whatever_the_weights() -> None:
    """A short table would raise IndexError on a rare draw."""
    assert len(spread([("a", 1), ("b", 1), ("c", 1)])) == TABLE_SIZE


def test_zipf_falls_with_the_rank() -> None:
    """With offset 1, the first item is twice as frequent as the second, three times as the third."""
    counts = Counter(zipf(["a", "b", "c"], offset=1))
    assert counts["a"] / counts["b"] == pytest.approx(2, rel=1e-3)
    assert counts["a"] / counts["c"] == pytest.approx(3, rel=1e-3)


def test_draws_stay_in_the_table() -> None:
    """Even the highest random bits must give a valid index."""
    assert draw(lambda count: 2**count - 1, zipf(["a", "b"])) == "b"
    assert below(lambda count: 2**count - 1, 7) == 6
    assert below(lambda count: 0, 7) == 0


def test_chance_has_its_percentage() -> None:
    """All 65,536 values of the 16 bits are tried, so the share is exact up to rounding."""
    values = iter(range(2**16))
    hits = sum(chance(lambda count: next(values), 25) for _ in range(2**16))
    assert hits == 2**14
    assert not chance(lambda count: 0, 0)
    assert chance(lambda count: 2**16 - 1, 100)


def test_random_bits_are_pythons_documented_ones() -> None:
    """The corpus depends on the Mersenne Twister MT19937, whose values no Python version changes."""
    assert Random(1).getrandbits(32) == 577090037
