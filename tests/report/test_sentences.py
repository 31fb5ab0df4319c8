"""Differences between a translation and its reference."""

import pytest

from pipelines.report.sentences import diff_sentences


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
    sides = diff_sentences(hypothesis, reference)
    assert [[text for text, alone in side if alone] for side in sides] == [ours, theirs]
    assert ["".join(text for text, _ in side) for side in sides] == [hypothesis, reference]
