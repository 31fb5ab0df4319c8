"""fairseq's dictionaries are read with the ids that fairseq gives."""

from pathlib import Path

import pytest

from convs2s.exchange.fairseq_dictionary import read_fairseq_dictionary
from convs2s.text.vocabulary.vocabulary import read_vocabulary, write_vocabulary


def write(folder: Path, text: str) -> Path:
    path = folder / "dict.en.txt"
    path.write_text(text, encoding="utf-8", newline="\n")
    return path


def test_entries_stay_in_order_and_the_start_symbol_is_last(tmp_path: Path) -> None:
    """Only the last space separates word and count; rows added as filler have count 0."""
    text = "a 12\n@@ 3\n\u00a0\u2028x 2\n<unk> 1 #fairseq:overwrite\nmadeupword0000 0\n"
    assert read_fairseq_dictionary(write(tmp_path, text)) == [
        ("a", 12), ("@@", 3), ("\u00a0\u2028x", 2), ("<unk>", 1), ("madeupword0000", 0), ("<s>", 0),
    ]  # fmt: skip


@pytest.mark.parametrize("line", ["", "word", "word x", "word -1", "word 1.5", " 3", "a\tb 3", "word ²"])
def test_a_line_that_is_no_entry_is_named(tmp_path: Path, line: str) -> None:
    """The error must give the line's number and content."""
    with pytest.raises(ValueError, match=r"dict.en.txt, line 2: found .*, wanted 'word count'"):
        read_fairseq_dictionary(write(tmp_path, f"a 1\n{line}\nb 1\n"))


def test_the_last_of_several_rows_for_a_word_is_used(tmp_path: Path) -> None:
    """That is what fairseq's flag means; earlier rows keep their ids, under names that no word can have."""
    text = "a 9\nb 8\na 7 #fairseq:overwrite\n<s> 6 #fairseq:overwrite\na 5 #fairseq:overwrite \nc 4\n"
    entries = read_fairseq_dictionary(write(tmp_path, text))
    assert [count for _, count in entries] == [9, 8, 7, 6, 5, 4, 0]
    write_vocabulary(tmp_path / "source.tsv", entries)
    vocabulary = read_vocabulary(tmp_path / "source.tsv")
    assert vocabulary.ids(["a", "b", "<s>", "c"]) == [3 + line for line in (4, 1, 3, 5)]
    for hidden in (0, 2, 6):
        assert " " in vocabulary.entry(3 + hidden)


@pytest.mark.parametrize("mark", ["<pad>", "</s>", "<unk>"])
def test_a_row_spelled_like_a_special_symbol_is_a_word(tmp_path: Path, mark: str) -> None:
    """As in fairseq, the symbol itself has no row; early versions wrote such a word without a flag."""
    for flag in ("", " #fairseq:overwrite"):
        entries = read_fairseq_dictionary(write(tmp_path, f"a 2\n{mark} 1{flag}\n"))
        assert entries == [("a", 2), (mark, 1), ("<s>", 0)]


def test_a_word_occurs_once_unless_flagged(tmp_path: Path) -> None:
    """fairseq refuses the later row, and renaming that row would give the word the wrong id."""
    with pytest.raises(ValueError) as raised:
        read_fairseq_dictionary(write(tmp_path, "a 1\nb 1\na 1\n"))
    assert str(raised.value) == (
        f"{tmp_path / 'dict.en.txt'}, line 3: the word 'a' is already in line 1, and #fairseq:overwrite does "
        "not follow it here; wanted each word once, because it has one id. fairseq rejects this second line; "
        "its first versions accepted it and gave the word this line's id. To keep the ids, append "
        "#fairseq:overwrite to line 3, or rename the word in line 1 to one that no text contains. Do not add "
        "or remove lines."
    )
    appended = read_fairseq_dictionary(write(tmp_path, "a 1\nb 1\na 1 #fairseq:overwrite\n"))
    renamed = read_fairseq_dictionary(write(tmp_path, "madeup 1\nb 1\na 1\n"))
    assert appended[1:] == renamed[1:]
    with pytest.raises(ValueError, match="line 1: the word '<s>' is already fairseq's start symbol, and"):
        read_fairseq_dictionary(write(tmp_path, "<s> 1\n"))
