"""Byte pair encoding from word counts."""

import os
import random
import re
from collections import Counter

import pytest

from convs2s.text.vocabulary.bpe import WORD_END, Bpe
from convs2s.text.vocabulary.learning import learn_bpe

# In the style of Sennrich et al. (2016), with characters that sentencepiece treats specially.
COUNTS = {"low": 5, "lower": 2, "newest": 6, "widest": 3, "3x3": 4, "日本a": 3, "a\u00a0b": 2, "e\u0301": 2}


def test_merges_are_the_most_frequent_pairs() -> None:
    """First comes es (9 times, first of equally frequent pairs), then est, then est with the word's end."""
    words = {"low": 5, "lower": 2, "newest": 6, "widest": 3}
    alphabet = len(set("".join(words))) + 1
    bpe = Bpe(learn_bpe(words, alphabet + 3, "n"))
    assert bpe.pieces("lowest") == ["l", "o", "w", "est" + WORD_END]
    assert bpe.size() == alphabet + 3


def test_words_are_not_split_by_script_or_digits() -> None:
    """T26: merges cross digits and scripts, and no character is normalized."""
    bpe = Bpe(learn_bpe({"3x3": 50, "日本a": 50, "ﬁ①": 50}, 16, "n"))
    for word in ("3x3", "日本a", "ﬁ①"):
        assert bpe.pieces(word) == [word + WORD_END]


def test_a_piece_may_be_longer_than_sentencepieces_default() -> None:
    """Only the number of merges limits a piece; sentencepiece's default would stop at 16 characters."""
    word = "Donaudampfschifffahrt"
    assert Bpe(learn_bpe({word: 9}, len(set(word)) + 1 + len(word), "n")).pieces(word) == [word + WORD_END]


def test_the_same_counts_give_the_same_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """DVC hashes the model, so it must not depend on the order of counts, the folder or the cores."""
    first = learn_bpe(COUNTS, 28, "n")
    monkeypatch.chdir("/")
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    assert learn_bpe(dict(reversed(COUNTS.items())), 28, "n") == first


def test_learning_uses_counts_not_lines() -> None:
    """A word seen 1,000 times is one line; its pair must win over a pair of two lines."""
    bpe = Bpe(learn_bpe({"ab": 1000, "cd": 1, "cde": 1}, 7, "n"))
    assert bpe.pieces("ab") in (["ab", WORD_END], ["a", "b" + WORD_END], ["ab" + WORD_END])
    assert len(bpe.pieces("cd")) == 3


def test_more_pieces_than_the_words_allow_is_an_error() -> None:
    """The message names the parameter and its maximum for these words."""
    with pytest.raises(
        ValueError, match=r"source_size is 500 but .* only (\d+) different pieces.*at most \1"
    ):
        learn_bpe(COUNTS, 500, "vocabulary.source_size")


def test_fewer_pieces_than_characters_is_an_error() -> None:
    """Coverage is 1.0 (T26): each of the letters a to j and the word end needs a piece."""
    with pytest.raises(ValueError, match=r"n is 10 but .* has 11 different characters.*at least 11: raise n"):
        learn_bpe({"abcdefghij": 3}, 10, "n")


def test_the_maximum_that_the_words_allow_is_valid() -> None:
    """The number in the message must work."""
    with pytest.raises(ValueError, match="at most") as caught:
        learn_bpe(COUNTS, 500, "n")
    most = int(re.findall(r"at most (\d+)", str(caught.value))[0])
    assert Bpe(learn_bpe(COUNTS, most, "n")).size() == most


def test_odd_words_do_not_stop_learning() -> None:
    """Very long words, words that sentencepiece skips, and Gigaword's "<unk>" are ordinary text."""
    odd = {
        "x" * 70_000: 1,
        "y" * 2**21: 1,
        "nul\x00": 9,
        "\u2585": 9,
        "<unk>": 99,
        "<s>": 99,
        "</s>": 99,
        "a\u2581b": 9,
    }
    bpe = Bpe(learn_bpe(odd | COUNTS, 55, "n"))
    for word in (*COUNTS, "<unk>", "<s>", "</s>", "\u2585\u2585", "nul\x00", "x" * 1000):
        assert "".join(bpe.pieces(word)) == word + WORD_END


def test_the_unknown_piece_is_not_text() -> None:
    """Gigaword has "<unk>" in its text; this must become a piece, and must not end the merges."""
    counts = {"<unk>x": 50, "<unk>y": 50, "<unk>": 90, "ab": 3}
    bpe = Bpe(learn_bpe(counts, 16, "n"))
    assert bpe.pieces("<unk>x") == ["<unk>", "x" + WORD_END]
    assert bpe.knows("<unk>")
    assert not bpe.knows("☃")


def test_a_word_end_within_a_word_becomes_an_underscore() -> None:
    """The character would end the word; it is the only one that is not restored."""
    bpe = Bpe(learn_bpe({"a_b": 9, "c\u2581d": 9}, 6, "n"))
    assert "".join(bpe.pieces("a\u2581b")) == "a_b" + WORD_END


def test_piece_counts_are_those_of_the_text() -> None:
    """Segmenting each distinct word once must give the same counts as segmenting the whole text."""
    bpe = Bpe(learn_bpe(COUNTS, 30, "n"))
    text = Counter(
        piece for word, count in COUNTS.items() for _ in range(count) for piece in bpe.pieces(word)
    )
    counts = bpe.piece_counts(COUNTS)
    assert {piece: count for piece, count in counts.items() if count} == text


def test_every_character_of_the_text_is_a_piece() -> None:
    """Then any word of these characters can be written, even in an order never seen before."""
    bpe = Bpe(learn_bpe(COUNTS, 30, "n"))
    counts = bpe.piece_counts({"low": 1, "\u2585\u2585": 2})
    assert {"l", "o", "w", "\u2585", WORD_END} <= set(counts)
    assert "n" not in counts
    assert "\u2585\u2585" not in counts
    assert counts["\u2585"] == 4


def test_pieces_spell_the_word() -> None:
    """Nothing is lost, whatever the word: known, unknown and unusual characters at random."""
    bpe = Bpe(learn_bpe(COUNTS, 30, "n"))
    draw = random.Random(1)
    characters = [*"".join(COUNTS), "☃", "🙂", "\x00", "\x07", "\u2585", "\u200d", "\ufeff", "\u3000"]
    for _ in range(2000):
        word = "".join(draw.choices(characters, k=draw.randint(1, 12)))
        assert "".join(bpe.pieces(word)) == word + WORD_END
