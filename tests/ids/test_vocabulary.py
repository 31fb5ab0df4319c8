"""Vocabulary entries and their ids."""

from pathlib import Path

import pytest

from convs2s.ids.vocabulary import (
    EOS,
    PAD,
    UNK,
    Vocabulary,
    most_frequent,
    read_vocabulary,
    write_vocabulary,
)


def test_special_symbols_come_first() -> None:
    """T20: this is our own order, which checkpoints rely on."""
    vocabulary = Vocabulary(["the", "a"])
    assert (PAD, EOS, UNK) == (0, 1, 2)
    assert [vocabulary.entry(i) for i in range(len(vocabulary))] == ["<pad>", "</s>", "<unk>", "the", "a"]
    assert vocabulary.ids(["a", "b", "the"]) == [4, UNK, 3]
    assert vocabulary.entries == ["the", "a"]


def test_words_spelled_like_special_symbols_are_words() -> None:
    """Text may contain "</s>", which must not end the sentence."""
    assert Vocabulary(["x"]).ids(["</s>", "<pad>", "<unk>"]) == [UNK, UNK, UNK]
    assert Vocabulary(["</s>"]).ids(["</s>"]) == [3]
    assert "</s>" not in Vocabulary(["x"])


def test_a_file_comes_back_as_written(tmp_path: Path) -> None:
    """Entries may contain any character except tab and line feed, even other line ends."""
    path = tmp_path / "source.tsv"
    write_vocabulary(path, [("ä\u2581", 5), ("x\x85y", 3), ("\u2028", 0)])
    assert path.read_bytes() == "ä\u2581\t5\nx\x85y\t3\n\u2028\t0\n".encode()
    assert read_vocabulary(path).entries == ["ä\u2581", "x\x85y", "\u2028"]
    assert most_frequent({"b": 1, "The": 2, "the": 7, "a": 1}) == [("the", 7), ("The", 2), ("a", 1), ("b", 1)]


@pytest.mark.parametrize(
    "line", ["word", "\t3", "word\t1\t2", "a\t1", "", "b\t-1", "b\t1.0", "b\t" + "9" * 5000]
)
def test_a_bad_line_is_named(tmp_path: Path, line: str) -> None:
    """A lost or split entry would shift all later ids, and translations would be nonsense."""
    path = tmp_path / "source.tsv"
    path.write_text(f"a\t2\n{line}\nb\t1\n")
    with pytest.raises(
        ValueError, match=r"source\.tsv, line 2: expected 'entry TAB count', .*, found .*dvc repro"
    ):
        read_vocabulary(path)
