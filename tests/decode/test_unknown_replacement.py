"""Unknown words become the dictionary's word, else a copy."""

from pathlib import Path

from convs2s.decode.unknown_replacement import Replacement, Unknown, replace_unknowns, write_replacements


def test_the_dictionary_takes_precedence_over_copying() -> None:
    """§4.3: look up the attended source word, else copy it; a text may contain the word <unk> itself."""
    words, records = replace_unknowns(
        ["A", "dog", "named", "Wuffi"],
        ["<unk>", "<unk>", "namens", "<unk>"],
        [Unknown(1, 1, False), Unknown(3, 3, True)],
        {"dog": "Hund", "A": "Ein"},
    )
    assert words == ["<unk>", "Hund", "namens", "Wuffi"]
    assert records == [
        Replacement(1, "dog", "Hund", "dictionary", False),
        Replacement(3, "Wuffi", "Wuffi", "copy", True),
    ]


def test_table_counts_lines_and_words_from_one(tmp_path: Path) -> None:
    """Editors count the same way; the summary counts each kind."""
    records = [
        [],
        [Replacement(1, "dog", "Hund", "dictionary", False), Replacement(3, "Wuffi", "Wuffi", "copy", True)],
    ]
    summary = write_replacements(tmp_path / "replacements.tsv", records)
    assert (tmp_path / "replacements.tsv").read_text(encoding="utf-8") == (
        "line\tword\tsource_word\treplacement\thow\teos\n2\t2\tdog\tHund\tdictionary\t0\n2\t4\tWuffi\tWuffi\tcopy\t1\n"
    )
    assert summary == (
        "replaced 2 unknown words: 1 from the dictionary, 1 copied; 1 attended mostly to the source's EOS"
    )
