"""fairseq's dictionaries."""

from pathlib import Path

import pytest

from convs2s.exchange.fairseq_dictionary import read_dictionary_types


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


def test_a_type_stands_once(tmp_path: Path) -> None:
    """A word has one id; the line must stay, for the rows of the weights are counted by lines."""
    with pytest.raises(ValueError, match="line 3: the type 'a' stands in line 1 already; wanted each once"):
        read_dictionary_types(write(tmp_path, "a 1\nb 1\na 1 #fairseq:overwrite\n"))
    with pytest.raises(ValueError, match="line 1: the type '<s>' stands for fairseq's start mark already"):
        read_dictionary_types(write(tmp_path, "<s> 1\n"))
