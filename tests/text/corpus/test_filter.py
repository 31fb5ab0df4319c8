"""Which sentence pairs are kept."""

import pytest

from convs2s.text.corpus.filter import (
    EMPTY,
    LONG,
    RATIO,
    REPEAT,
    Pair,
    PairFilter,
    characters_per_character,
    pair_hash,
    repeats,
)


def pair(source: int, target: int) -> Pair:
    """Return a pair whose sides have these numbers of words."""
    return " ".join(["a"] * source), " ".join(["b"] * target)


def paper(**changes: object) -> PairFilter:
    """Return the rules of §4.1 with some changes."""
    values = {"max_words": 175, "max_ratio": 1.5, "drop_empty": True, "repeated": None}
    return PairFilter(**(values | changes))  # type: ignore[arg-type]


def removed_by(rules: PairFilter, candidate: Pair) -> str | None:
    """Return the rule that removes a pair."""
    kept = list(rules.keep([candidate]))
    names = [name for name, count in rules.removed.items() if count]
    assert len(kept) + len(names) == 1
    return names[0] if names else None


@pytest.mark.parametrize(
    ("changes", "source", "target", "rule"),
    [
        ({}, 175, 175, None),
        ({}, 176, 175, LONG),
        ({}, 175, 176, LONG),
        ({}, 2, 3, None),
        ({}, 31, 20, RATIO),
        ({}, 20, 31, RATIO),
        ({}, 5, 0, EMPTY),
        ({}, 0, 0, EMPTY),
        ({}, 0, 400, EMPTY),  # also too long, but the first rule counts
        ({"max_words": None}, 500, 500, None),
        ({"max_ratio": None}, 10, 100, None),
        ({"drop_empty": False, "max_ratio": None}, 0, 3, None),
        ({"drop_empty": False}, 0, 3, RATIO),  # an empty side makes the ratio infinite
        ({"drop_empty": False}, 0, 0, None),
        ({"max_ratio": 1.15}, 115, 100, None),  # 1.15 * 100 is 114.99999999999999
    ],
)
def test_limits_are_inclusive_and_hold_in_either_direction(
    changes: dict[str, object], source: int, target: int, rule: str | None
) -> None:
    """§4.1 drops sentences of more than 175 words and ratios above 1.5 (T28); others differ (T27)."""
    assert removed_by(paper(**changes), pair(source, target)) == rule


def test_a_ratio_in_characters_is_relative_to_that_of_the_corpus() -> None:
    """Spaces and empty sides aside, one language here takes twice as many characters as the other."""
    pairs = [("aaaa aaaa aaaa", "bbbbbb"), ("a a a a a a a a", "bb bb"), ("", "b" * 100)]
    assert characters_per_character(pairs) == 2
    assert characters_per_character([("", "")]) == 1  # no characters to compare
    for source, target, rule in ((20, 10, None), (30, 10, None), (31, 10, RATIO), (20, 16, RATIO)):
        assert removed_by(paper(corpus_ratio=2.0), ("a" * source, "b" * target)) == rule


def test_only_the_first_of_equal_pairs_stays() -> None:
    """Both sides must be equal: two translations of one source are not repeats."""
    pairs = [("a", "b"), ("a", "c"), ("a", "b"), ("d", "e"), ("a", "b"), ("a b", "c"), ("a", "b c")]
    rules = paper(max_ratio=None, repeated=repeats(pairs))
    assert list(rules.keep(pairs)) == [("a", "b"), ("a", "c"), ("d", "e"), ("a b", "c"), ("a", "b c")]
    assert rules.removed == {EMPTY: 0, LONG: 0, RATIO: 0, REPEAT: 2}
    assert repeats([]) == set()


def test_hashes_are_the_same_on_every_machine() -> None:
    """Python's own hash differs between runs; this is BLAKE2b of 'a TAB b', as by b2sum -l 64."""
    assert pair_hash(("a", "b")).to_bytes(8, "little").hex() == "21f240a02ae87773"


def test_the_table_of_rules_has_their_limits() -> None:
    """A reader of the report sees which rules were on, and how strict they were."""
    off = paper(max_words=None, max_ratio=None, drop_empty=False, repeated={1})
    assert off.rules_table()["limit"].tolist() == ["off", "off", "off", "on"]
    assert paper().rules_table()["limit"].tolist() == ["on", "175 words", "1.5", "off"]


def test_the_table_of_lengths_counts_pairs_in_bins_of_five_words() -> None:
    """By hand: 4 falls in the first bin, 5 in the second, 1,000 in the last, which is open."""
    rules = paper()
    list(rules.keep([pair(4, 5), pair(1000, 200), pair(7, 9)]))
    table = rules.lengths_table().set_index("words")
    assert table.index.tolist() == list(range(0, 201, 5))
    assert table.loc[[0, 5, 200], "source_read"].tolist() == [1, 1, 1]
    assert table.loc[[0, 5, 200], "target_read"].tolist() == [0, 2, 1]
    assert table.loc[[0, 5, 200], "source_kept"].tolist() == [1, 1, 0]
