"""Byte pair encoding from word counts."""

import os
from collections import Counter

import pytest

from convs2s.text.vocabulary.learning import learn
from convs2s.text.vocabulary.segmentation import WORD_MARK, Bpe

# In the style of Sennrich et al. (2016), with characters that sentencepiece treats specially.
COUNTS = {"low": 5, "lower": 2, "newest": 6, "widest": 3, "3x3": 4, "日本a": 3, "a\u00a0b": 2, "e\u0301": 2}


def test_merges_are_the_most_frequent_pairs() -> None:
    """First comes es (9 times, first of equally frequent pairs), then est, then est with the word's end."""
    words = {"low": 5, "lower": 2, "newest": 6, "widest": 3}
    alphabet = len(set("".join(words))) + 1
    bpe = Bpe(learn("bpe", words, alphabet + 3, "n"))
    assert bpe.pieces("lowest") == ["l", "o", "w", "est" + WORD_MARK]


def test_words_are_not_split_by_script_digits_or_length() -> None:
    """T26: merges cross digits and scripts, and no character is normalized."""
    bpe = Bpe(learn("bpe", {"3x3": 50, "日本a": 50, "ﬁ①": 50}, 16, "n"))
    for word in ("3x3", "日本a", "ﬁ①"):
        assert bpe.pieces(word) == [word + WORD_MARK]
    word = "Donaudampfschifffahrt"  # sentencepiece's default would stop at 16 characters
    bpe = Bpe(learn("bpe", {word: 9}, len(set(word)) + 1 + len(word), "n"))
    assert bpe.pieces(word) == [word + WORD_MARK]


def test_the_same_counts_give_the_same_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """DVC hashes the model, so it must not depend on the order of counts, the folder or the cores."""
    first = learn("bpe", COUNTS, 28, "n")
    monkeypatch.chdir("/")
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    assert learn("bpe", dict(reversed(COUNTS.items())), 28, "n") == first


def test_odd_words_do_not_stop_learning() -> None:
    """Very long words, words that sentencepiece skips, and Gigaword's "<unk>" are ordinary text."""
    odd = {"x" * 70_000: 1, "y" * 2**21: 1, "nul\x00": 9, "\u2585": 9, "<unk>": 99, "</s>": 99, "a\u2581b": 9}
    bpe = Bpe(learn("bpe", odd | COUNTS, 55, "n"))
    for word in (*COUNTS, "<unk>", "</s>", "\u2585\u2585", "nul\x00", "x" * 1000):
        assert "".join(bpe.pieces(word)) == word + WORD_MARK


def test_every_character_of_the_text_is_a_piece() -> None:
    """Then any word of these characters can be written, even in an order never seen before."""
    bpe = Bpe(learn("bpe", COUNTS, 30, "n"))
    counts = bpe.piece_counts({"low": 3, "newest": 1})
    assert {*"lownest", WORD_MARK} <= set(counts)
    assert "d" not in counts
    text = bpe.pieces("low") * 3 + bpe.pieces("newest")
    assert {piece: count for piece, count in counts.items() if count} == Counter(text)
