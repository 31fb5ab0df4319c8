"""Text that is unlike the training text is noticed before it is translated."""

import pytest

from convs2s.ids.vocabulary import Vocabulary
from convs2s.serve.pairs import Rarity
from convs2s.text.vocabulary.codec import Codec

# Usual: (98 ln(100/98) + 2 ln 100) / (98 * 4 + 2) = 0.0284 nats per character; 1.35 times that is 0.0384.
COUNTS = {"abcd": 98, "e": 1, "f": 1}


@pytest.mark.parametrize(
    ("words", "rare"),
    [
        ([], False),
        (["abcd"], False),
        (["e"], True),
        (["e"] + ["abcd"] * 30, True),  # (ln 100 + 30 ln(100/98)) / 121 = 0.043
        (["e"] + ["abcd"] * 35, False),  # (ln 100 + 35 ln(100/98)) / 141 = 0.038
        (["x" * 200], True),  # unknown: ln 200 / 200 = 0.026, but most words are
        (["x" * 200, "abcd"], False),  # half of them are
    ],
)
def test_rare_text_has_many_nats_per_character_or_mostly_unknown_words(words: list[str], rare: bool) -> None:
    """A word that occurs n times of 100 has ln(100/n) nats; an unknown one counts as half a time."""
    assert Rarity(Codec(Vocabulary(list(COUNTS)), None), COUNTS).is_rare(words) == rare


def test_without_counts_only_unknown_words_are_rare() -> None:
    """A dictionary written by hand for fairseq may count every word as zero."""
    rarity = Rarity(Codec(Vocabulary(["a", "b"]), None), {"a": 0, "b": 0})
    assert rarity.is_rare(["x"])
    assert not rarity.is_rare(["a", "b"])
