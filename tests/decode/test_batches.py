"""Sentences longer than the position table are split without losing anything; batches fit in memory."""

import pytest

from convs2s.decode.batches import BATCH_TOKENS, batches, cut


def pieces(text: str, size: int = 99) -> tuple[list[str], list[int]]:
    """Return the words, and the word index of each piece of at most `size` characters."""
    words = text.split()
    return words, [i for i, word in enumerate(words) for _ in range(0, len(word), size)]


@pytest.mark.parametrize(
    ("text", "limit", "wanted"),
    [
        ("a b c", 3, ["a b c"]),
        ("a b . c d e f", 5, ["a b .", "c d e f"]),  # after a sentence
        ("a b , c d e f", 5, ["a b ,", "c d e f"]),  # else after a clause
        ("a b , c . d e f", 6, ["a b , c .", "d e f"]),  # the last end counts
        ("a b c d e f", 4, ["a b c d", "e f"]),  # else as much as fits
        (". a b c d e f", 4, [". a b c", "d e f"]),  # no part shorter than half of what fits
        ("a b c d e", 1, ["a", "b", "c", "d", "e"]),
    ],
)
def test_parts_end_where_text_pauses(text: str, limit: int, wanted: list[str]) -> None:
    """The longest allowed part that ends a sentence, a clause or a word."""
    words, word_of_piece = pieces(text)
    assert [" ".join(words[i] for i in part) for part in cut(words, word_of_piece, limit)] == wanted


def test_words_are_cut_only_if_too_long_by_themselves() -> None:
    """Pieces have two characters and five fit: ab|cd ef|gh|ij, then the long word is cut as needed."""
    words, word_of_piece = pieces("abcd efghij klmnopqrstuvwxyz", size=2)
    parts = cut(words, word_of_piece, 5)
    assert parts == [range(0, 5), range(5, 10), range(10, 13)]


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 100])
def test_parts_cover_everything_once(limit: int) -> None:
    """For any text, the parts are its pieces in order, and no part is too long or empty."""
    words, word_of_piece = pieces("Ein langer, sehr langer Satz. Und noch einer! " * 9, size=3)
    parts = cut(words, word_of_piece, limit)
    assert [i for part in parts for i in part] == list(range(len(word_of_piece)))
    assert all(1 <= len(part) <= limit for part in parts)


def test_batches_are_bounded_in_sentences_and_tokens() -> None:
    """Batches have fewer long sentences, and a giant one is alone; similar lengths go together."""
    lengths = [5, BATCH_TOKENS // 2, 3, BATCH_TOKENS // 2, 2 * BATCH_TOKENS, 5, 4]
    assert list(batches(lengths, 3)) == [[4], [1, 3], [0, 5, 6], [2]]
