"""The dictionary of unknown-word replacement, built, written and read."""

from pathlib import Path

import pytest

from convs2s.text.alignment import link_counting
from convs2s.text.alignment.dictionary import Entry, read_dictionary, write_dictionary
from tests.text.alignment.corpora import LinkLists, number, pack

HEADER = "source\ttarget\tcount\tlinks\n"


def build_dictionary(folder: Path, pairs: list[tuple[str, str]], links: LinkLists) -> list[Entry]:
    """Return the dictionary of a corpus with these links."""
    return list(link_counting.build_dictionary(*number(folder, pairs), pack(links)))


def test_the_most_frequent_partner_is_taken_with_its_counts(tmp_path: Path) -> None:
    """`house` is linked twice with Haus and once with Heim; `the` once, `blue` never."""
    pairs = [("the house", "das Haus"), ("house", "Haus"), ("blue house", "Heim")]
    links = [[(0, 0), (1, 1)], [(0, 0)], [(1, 0)]]
    assert build_dictionary(tmp_path, pairs, links) == [
        Entry("house", "Haus", 2, 3),
        Entry("the", "das", 1, 1),
    ]


def test_near_ties_go_to_the_rarer_target_word(tmp_path: Path) -> None:
    """Now and then a comma is linked with any word. Nine links of ten compete with ten; eight do not."""
    for rarer, wanted in ((9, "rare"), (8, ",")):
        pairs = [("w", ",")] * 10 + [("w", "rare")] * rarer
        (entry,) = build_dictionary(tmp_path, pairs, [[(0, 0)]] * len(pairs))
        assert entry.target == wanted
    pairs = [("leider ,", "unfortunately ,"), ("leider", ","), ("ja ,", "yes ,")]
    links = [[(0, 0), (1, 1)], [(0, 0)], [(0, 0), (1, 1)]]
    found = {entry.source: entry for entry in build_dictionary(tmp_path, pairs, links)}
    assert found["leider"] == Entry("leider", "unfortunately", 1, 2)


def test_other_ties_and_entries_are_in_code_point_order(tmp_path: Path) -> None:
    """The order of the text must not matter; upper case comes before lower case, ä after z."""
    for words in (["z", "Z", "ä"], ["ä", "z", "Z"]):
        pairs = [("a", word) for word in words]
        assert build_dictionary(tmp_path, pairs, [[(0, 0)]] * 3) == [Entry("a", "Z", 1, 3)]
    entries = build_dictionary(tmp_path, [("é z a Z", "1 2 3 4")], [[(0, 0), (1, 1), (2, 2), (3, 3)]])
    assert [entry.source for entry in entries] == ["Z", "a", "z", "é"]


def test_a_written_dictionary_reads_back(tmp_path: Path) -> None:
    """Words may contain any separators except tab and line feed."""
    entries = [Entry('"', '"', 1, 1), Entry("a\xa0b", "#", 3, 4), Entry("x\x0by", "\u2028", 2, 2)]
    write_dictionary(tmp_path / "d", entries)
    assert (tmp_path / "d").read_bytes().startswith(b'source\ttarget\tcount\tlinks\n"\t"\t1\t1\n')
    assert read_dictionary(tmp_path / "d") == {'"': '"', "a\xa0b": "#", "x\x0by": "\u2028"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"dictionary\.tsv, line 1: expected the header .*, found ''"),
        ("a\tb\t1\t1\n", r"line 1: expected the header .* dvc repro align"),
        (HEADER + "a\tb\t1\t1\nc d\n", r"line 3: expected four tab-separated columns .*, found 'c d'"),
        (HEADER + "a\tb\t1\t1\t1\n", "line 2: expected four tab-separated columns"),
        (HEADER + "a\t\t1\t1\n", "line 2: expected four tab-separated columns"),
        (HEADER + "a\tb\tmany\t1\n", "line 2: .* the last two whole numbers, found"),
        (HEADER + "a\tb\t1\t-1\n", "line 2: .* the last two whole numbers, found"),
        (HEADER + "New York\tb\t1\t1\n", "line 2: .* the source a word"),
        (HEADER + "a\tb\t1\t1\n\nc\td\t1\t1\n", "line 3: expected four tab-separated columns"),
        (HEADER + "a\tb\t1\t1\na\tc\t1\t1\n", r"line 3: expected .* on no line before"),
    ],
)
def test_an_invalid_dictionary_is_an_error_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    """Users may correct the file by hand, so an error must name the line."""
    path = tmp_path / "dictionary.tsv"
    path.write_text(text, encoding="utf-8", newline="\n")
    with pytest.raises(ValueError, match=message):
        read_dictionary(path)
