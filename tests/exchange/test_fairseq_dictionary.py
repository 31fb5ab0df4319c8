"""fairseq's dictionaries."""

from pathlib import Path

import pytest

from convs2s.exchange.fairseq_dictionary import read_dictionary_types
from convs2s.text.vocabulary.vocabulary import read_vocabulary, write_vocabulary


def write(folder: Path, text: str) -> Path:
    path = folder / "dict.en.txt"
    path.write_text(text, encoding="utf-8", newline="\n")
    return path


def test_types_stay_in_order_and_the_start_mark_is_last(tmp_path: Path) -> None:
    """Only the last space parts type and count; rows added to fill up have count 0."""
    text = "a 12\n@@ 3\n\u00a0\u2028x 2\n<unk> 1 #fairseq:overwrite\nmadeupword0000 0\n"
    assert read_dictionary_types(write(tmp_path, text)) == [
        ("a", 12), ("@@", 3), ("\u00a0\u2028x", 2), ("<unk>", 1), ("madeupword0000", 0), ("<s>", 0),
    ]  # fmt: skip


@pytest.mark.parametrize("line", ["", "word", "word x", "word -1", "word 1.5", " 3", "a\tb 3", "word ²"])
def test_a_line_that_is_no_entry_is_named(tmp_path: Path, line: str) -> None:
    """With its number and what it holds."""
    with pytest.raises(ValueError, match=r"dict.en.txt, line 2: found .*, wanted 'type count'"):
        read_dictionary_types(write(tmp_path, f"a 1\n{line}\nb 1\n"))


def test_of_types_spelled_alike_text_has_the_last(tmp_path: Path) -> None:
    """So says fairseq's flag; the rows before keep their ids, under names that no word of a text can have."""
    text = "a 9\nb 8\na 7 #fairseq:overwrite\n<s> 6 #fairseq:overwrite\na 5 #fairseq:overwrite \nc 4\n"
    types = read_dictionary_types(write(tmp_path, text))
    assert [count for _, count in types] == [9, 8, 7, 6, 5, 4, 0]
    write_vocabulary(tmp_path / "source.tsv", types)
    vocabulary = read_vocabulary(tmp_path / "source.tsv")
    assert vocabulary.ids(["a", "b", "<s>", "c"]) == [3 + line for line in (4, 1, 3, 5)]
    for hidden in (0, 2, 6):
        assert " " in vocabulary.type(3 + hidden)


@pytest.mark.parametrize("mark", ["<pad>", "</s>", "<unk>"])
def test_a_row_spelled_as_a_mark_is_a_word(tmp_path: Path, mark: str) -> None:
    """The mark itself is no row, here as in fairseq; flagged or, as its first versions wrote it, not."""
    for flag in ("", " #fairseq:overwrite"):
        types = read_dictionary_types(write(tmp_path, f"a 2\n{mark} 1{flag}\n"))
        assert types == [("a", 2), (mark, 1), ("<s>", 0)]


def test_a_type_stands_once_without_the_flag(tmp_path: Path) -> None:
    """fairseq refuses the later row. To name that one otherwise would give the word the wrong id."""
    with pytest.raises(ValueError) as raised:
        read_dictionary_types(write(tmp_path, "a 1\nb 1\na 1\n"))
    assert str(raised.value) == (
        f"{tmp_path / 'dict.en.txt'}, line 3: the type 'a' stands in line 1 already, and #fairseq:overwrite "
        "does not stand behind this one; wanted each once, for a word has one id. This later line is the one "
        "that fairseq refuses; its first versions did not, and gave the word the later line's id. For the "
        "same ids, append #fairseq:overwrite to line 3, or rename line 1's, the earlier one, to a word that "
        "no text has. The lines must stay as many."
    )
    appended = read_dictionary_types(write(tmp_path, "a 1\nb 1\na 1 #fairseq:overwrite\n"))
    renamed = read_dictionary_types(write(tmp_path, "madeup 1\nb 1\na 1\n"))
    assert appended[1:] == renamed[1:]
    with pytest.raises(
        ValueError, match="line 1: the type '<s>' stands for fairseq's start mark already, and"
    ):
        read_dictionary_types(write(tmp_path, "<s> 1\n"))
