"""Which words of a translation come from which source words."""

from convs2s.decode.links import attend_words


def test_a_token_that_attends_to_no_word_links_none() -> None:
    """Nor does one that is of no word, or EOS, which has a source but no owner."""
    assert attend_words([0, 0, 1, -1, 2], [3, -1, -1, 4, 5, 6], 3) == [{3}, set(), {5}]
