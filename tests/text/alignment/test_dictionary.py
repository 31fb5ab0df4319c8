"""The dictionary of unknown-word replacement, built, written and read."""

from pathlib import Path

import pytest

from convs2s.text.alignment.dictionary import Entry, read_dictionary, write_dictionary
from convs2s.text.alignment.link_counting import build_dictionary

HEADER = "source\ttarget\tcount\tlinks\n"


def written(folder: Path, text: str) -> Path:
    """Write a dictionary file by hand."""
    path = folder / "dictionary.tsv"
    path.write_text(text, encoding="utf-8", newline="\n")
    return path


def test_the_most_frequent_partner_is_taken_with_its_counts() -> None:
    """`house` is linked twice with Haus and once with Heim; `the` once, `blue` never."""
    pairs = [("the house", "das Haus"), ("house", "Haus"), ("blue house", "Heim")]
    links = [[(0, 0), (1, 1)], [(0, 0)], [(1, 0)]]
    assert build_dictionary(pairs, links) == [Entry("house", "Haus", 2, 3), Entry("the", "das", 1, 1)]


def test_ties_go_to_the_rarer_target_word() -> None:
    """Now and then a comma is linked with any word; the right word is rarer."""
    pairs = [("leider ,", "unfortunately ,"), ("leider", ","), ("ja ,", "yes ,")]
    links = [[(0, 0), (1, 1)], [(0, 0)], [(0, 0), (1, 1)]]
    found = {entry.source: entry for entry in build_dictionary(pairs, links)}
    assert found["leider"] == Entry("leider", "unfortunately", 1, 2)


def test_near_ties_go_to_the_rarer_target_word_too() -> None:
    """Nine links of ten compete with ten; eight do not."""
    for rarer, wanted in ((9, "rare"), (8, ",")):
        pairs = [("w", ",")] * 10 + [("w", "rare")] * rarer
        (entry,) = build_dictionary(pairs, [[(0, 0)]] * len(pairs))
        assert entry.target == wanted


def test_other_ties_go_to_the_first_by_code_point() -> None:
    """The order of the text must not matter; upper case comes before lower case, ä after z."""
    for words in (["z", "Z", "ä"], ["ä", "z", "Z"]):
        pairs = [("a", word) for word in words]
        assert build_dictionary(pairs, [[(0, 0)]] * 3) == [Entry("a", "Z", 1, 3)]


def test_entries_are_in_code_point_order() -> None:
    """The file's bytes must depend on the entries alone."""
    entries = build_dictionary([("é z a Z", "1 2 3 4")], [[(0, 0), (1, 1), (2, 2), (3, 3)]])
    assert [entry.source for entry in entries] == ["Z", "a", "z", "é"]


def test_links_without_pairs_are_an_error() -> None:
    """A shifted alignment would fill the dictionary with nonsense."""
    with pytest.raises(ValueError, match="longer"):
        build_dictionary([("a", "b")], [[], []])


def test_a_written_dictionary_reads_back(tmp_path: Path) -> None:
    """Words may contain any separators except tab and line feed."""
    entries = [Entry('"', '"', 1, 1), Entry("a\xa0b", "#", 3, 4), Entry("x\x0by", "\u2028", 2, 2)]
    write_dictionary(tmp_path / "d", entries)
    assert (tmp_path / "d").read_bytes().startswith(b'source\ttarget\tcount\tlinks\n"\t"\t1\t1\n')
    assert read_dictionary(tmp_path / "d") == {'"': '"', "a\xa0b": "#", "x\x0by": "\u2028"}


def test_an_empty_dictionary_is_its_header(tmp_path: Path) -> None:
    """This distinguishes a dictionary without entries from a file truncated to 0 bytes."""
    write_dictionary(tmp_path / "d", [])
    assert (tmp_path / "d").read_text() == HEADER
    assert read_dictionary(tmp_path / "d") == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"dictionary\.tsv, line 1: expected the header .*, found ''"),
        ("a\tb\t1\t1\n", r"line 1: expected the header .*, found 'a\\tb\\t1\\t1'.* dvc repro align"),
        (
            HEADER + "a\tb\t1\t1\nc d\n",
            r"line 3: expected four tab-separated columns .*, found 'c d'",
        ),
        (HEADER + "a\tb\t1\t1\t1\n", "line 2: expected four tab-separated columns"),
        (HEADER + "a\t\t1\t1\n", "line 2: expected four tab-separated columns"),
        (HEADER + "\n", "line 2: expected four tab-separated columns .*, found ''"),
        (HEADER + "a\tb\t1.5\t-2\n", r"line 2: expected whole numbers, found the counts '1.5' and '-2'"),
        (HEADER + "a\tb\t²\t3\n", r"line 2: expected whole numbers, found the counts '²' and '3'"),
        (HEADER + "a\tb\t0\t3\n", r"line 2: expected a count of at least 1.*, found 0 of 3 links"),
        (HEADER + "a\tb\t4\t3\n", r"line 2: .* at most all links, found 4 of 3 links"),
        (HEADER + "a\tb\t1\t1\na\tc\t1\t1\n", r"line 3: expected one entry .* 'a' besides 'b'. Delete one"),
    ],
)
def test_an_invalid_dictionary_is_an_error_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    """Users may correct the file by hand, so an error must name the line."""
    with pytest.raises(ValueError, match=message):
        read_dictionary(written(tmp_path, text))


def test_a_missing_dictionary_is_an_error(tmp_path: Path) -> None:
    """The message names the file."""
    with pytest.raises(FileNotFoundError, match=r"dictionary\.tsv does not exist"):
        read_dictionary(tmp_path / "dictionary.tsv")
