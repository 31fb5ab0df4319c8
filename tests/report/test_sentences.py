"""Differences between a translation and its reference, and between the parameters of runs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.report.sentences import compare


@pytest.mark.parametrize(
    ("hypothesis", "reference", "ours", "theirs"),
    [
        ("the cat sleeps.", "the dog sleeps.", ["cat"], ["dog"]),
        ("a cat", "a cat", [], []),
        ("", "a cat", [], ["a cat"]),
        ("a b c", "c", ["a b"], []),
        ("well, yes", "well yes", [","], []),
        ("猫が寝る", "犬が寝る", ["猫"], ["犬"]),
        ("the the cat", "the cat", ["the"], []),
    ],
)
def test_words_that_the_other_side_lacks(
    hypothesis: str, reference: str, ours: list[str], theirs: list[str]
) -> None:
    """A punctuation mark is its own word; in a script without spaces, so is each character."""
    found = compare(hypothesis, reference)
    assert [[text for text, alone in side if alone] for side in found] == [ours, theirs]


@given(st.text(alphabet="ab .,é猫\u0301\n"), st.text(alphabet="ab .,é猫\u0301\n"))
def test_no_character_is_lost(hypothesis: str, reference: str) -> None:
    """The pieces must add up to the text, and no marked piece may begin with a space."""
    for text, pieces in zip((hypothesis, reference), compare(hypothesis, reference), strict=True):
        assert "".join(piece for piece, _ in pieces) == text
        assert not [piece for piece, alone in pieces if alone and piece[0].isspace()]
