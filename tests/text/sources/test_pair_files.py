"""Pairs from two files, or from one TSV."""

import bz2
import gzip
import lzma
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from convs2s.base.files import zstd
from convs2s.text.headings import is_heading
from convs2s.text.sources.pair_files import file_part

ROOT = Path(__file__).parents[3]

PACK: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress, ".zst": zstd.compress
}  # fmt: skip


def read_two(folder: Path, source: bytes, target: bytes) -> list[tuple[str, str]]:
    """Return the pairs of two files with these contents."""
    (folder / "a.en").write_bytes(source)
    (folder / "a.de").write_bytes(target)
    return list(file_part([folder / "a.en", folder / "a.de"], None, ("en", "de")).pairs)


@pytest.mark.parametrize(
    ("source", "target", "pairs"),
    [
        # U+2028, \x0b and \x85 occur within sentences of crawled text; cutting there would shift all pairs.
        ("a\u2028b\x0bc\x85d\n", "e\rf\n", [("a\u2028b\x0bc\x85d", "e\rf")]),
        # Concatenated files have byte order marks inside, too; within a line, U+FEFF is a character.
        ("\ufeffone\r\n\ufefftwo\r\n", "ei\ufeffns\nzwei\n", [("one", "ei\ufeffns"), ("two", "zwei")]),
        # A file may have been converted to Windows' line ends twice.
        ("a\r\r\nb\n", "c\r\n\r\n", [("a", "c"), ("b", "")]),
        # Some editors omit the last line end.
        ("one\ntwo", "eins\nzwei\n", [("one", "eins"), ("two", "zwei")]),
    ],
)
def test_only_line_feeds_end_a_line(
    tmp_path: Path, source: str, target: str, pairs: list[tuple[str, str]]
) -> None:
    """Carriage returns before them, and byte order marks, are removed."""
    assert read_two(tmp_path, source.encode(), target.encode()) == pairs


def test_columns_of_a_tsv_are_counted_from_0(tmp_path: Path) -> None:
    """Others are ignored, and quotes are characters: a CSV reader would join lines up to the next one."""
    (tmp_path / "a.tsv.gz").write_bytes(gzip.compress(b'1\teins\t"one\n2\tzwei"\ttwo\n'))
    assert list(file_part([tmp_path / "a.tsv.gz"], (2, 1), ("en", "de")).pairs) == [
        ('"one', "eins"),
        ("two", 'zwei"'),
    ]


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        (b"a\nb\nc\n", b"x\n", r"a\.en has 3 lines but .*a\.de has 1\."),
        (b"a\n", b"x\ny\nz\n", r"a\.en has 1 line but .*a\.de has 3\."),
        (b"a\nb\n", b"x\nw\xdf\n", r"a\.de, line 2: byte 1 is 0xdf, which is not UTF-8.*: iconv -f latin1 "),
        (b"a\n", b"w\xdf\n", r"or, if few bytes are damaged: iconv -c -f utf-8 -t utf-8, which removes them"),
        (b"a\n", "x\n".encode("utf-16"), r"a\.de, line 1: byte 0 is 0xff.*: iconv -f utf-16 -t utf-8"),
        (
            b"a\n\n",
            "abcd\n".encode("utf-16le"),
            r"a\.de, line 1: expected UTF-8, found 4 null .*iconv -f utf-16le .*-t utf-8",
        ),
    ],
)
def test_unfit_files_are_an_error(tmp_path: Path, source: bytes, target: bytes, message: str) -> None:
    """All pairs after a missing line would be wrong."""
    with pytest.raises(ValueError, match=message):
        read_two(tmp_path, source, target)


@pytest.mark.parametrize("kept", [3, 5000, -1])
@pytest.mark.parametrize("suffix", PACK)
def test_truncated_file_is_an_error(tmp_path: Path, suffix: str, kept: int) -> None:
    """A broken download must not pass for a shorter corpus, even if all of its text has arrived."""
    text = "".join(f"sentence {i} {i * i * 7919}\n" for i in range(5000)).encode()
    (tmp_path / f"a.en{suffix}").write_bytes(PACK[suffix](text)[:kept])
    (tmp_path / "a.de").write_bytes(text)
    with pytest.raises(ValueError, match=rf"a\.en{suffix}(, line 1: byte| cannot be read past line)"):
        list(file_part([tmp_path / f"a.en{suffix}", tmp_path / "a.de"], None, ("en", "de")).pairs)


@pytest.mark.parametrize("suffix", PACK)
def test_bytes_that_are_no_member_are_an_error(tmp_path: Path, suffix: str) -> None:
    """Compressed in parallel, a file has many members: if damage at the start of one ended it, text would be
    missing; zeros are padding.
    """
    whole = PACK[suffix](b"one\n") + PACK[suffix](b"two\n")
    (tmp_path / "a.de").write_bytes(b"eins\nzwei\n")
    for end, text in ((b"", ["one", "two"]), (b"\0" * 200_000, ["one", "two"]), (b"?" * 9, None)):
        (tmp_path / "a.en").write_bytes(whole + end)
        pairs = file_part([tmp_path / "a.en", tmp_path / "a.de"], None, ("en", "de")).pairs
        if text:
            assert [source for source, _ in pairs] == text
        else:
            with pytest.raises(ValueError, match=r"a\.en cannot be read past line \d: .*Fetch it again"):
                list(pairs)


def test_a_missing_file_or_a_short_line_of_a_tsv_is_named(tmp_path: Path) -> None:
    """Files are checked before anything is read; a line is named by its number."""
    (tmp_path / "a.tsv").write_bytes(b"one\teins\ntwo\n")
    with pytest.raises(FileNotFoundError, match=r"a\.de does not exist.*check the name, in params\.yaml"):
        file_part([tmp_path / "a.tsv", tmp_path / "a.de"], None, ("en", "de"))
    with pytest.raises(ValueError, match=r"a\.tsv, line 2: expected at least 2 tab-separated .* found 1\."):
        list(file_part([tmp_path / "a.tsv"], (0, 1), ("en", "de")).pairs)


ROWS = [[f"the {word} sleeps on", f"{word} schläft weiter"] for word in "abcdefghijkl"]
PHRASES = [[f"go {word}", f"geh {word}"] for word in "abcdefghijkl"]
LONG = [[f"the {number} sheep sleep.", f"{number} Schafe schlafen."] for number in range(1200)]


def table(rows: list[list[str]], folder: Path) -> list[tuple[str, str]]:
    (folder / "x.tsv").write_text("".join("\t".join(row) + "\n" for row in rows))
    return list(file_part([folder / "x.tsv"], (0, 1), ("en", "de")).pairs)


HEADER = "a row that looks like a header, taken as a pair: 1, first in line 1"


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([[f'"{cell}"' for cell in row] for row in ROWS],
            "rows with quotes around each field, kept as text: 12, first in line 1"),
        ([*LONG, ['"a ""good"" one"', "b"]],
            "rows with fields in quotes and quotes doubled, kept as text: 1, first in line 1,201"),
        ([["en", "de"], *ROWS], HEADER),
        ([["source_text", "Target text"], ["x", "y"]], HEADER),
        ([["English", "German (formal)"], *LONG], HEADER),
        ([["English", "German"], ["Hi", "Hey"]], HEADER),
        ([["English", "German"]], HEADER),
        ([["German", "English"], *PHRASES], HEADER),
        ([["Frage", "Antwort"], *LONG], HEADER),
        ([["Resumption", "Wiederaufnahme", "score"], *([*row, "0.5"] for row in LONG)], HEADER),
        ([["the id.", "die Nummer.", "id"], *([*row, str(i)] for i, row in enumerate(ROWS))], HEADER),
        ([*LONG, ["a", "b", "c"], ["a", "b", "c"]],
            "rows with more or fewer columns than row 1, read as they are: 2, first in line 1,201"),
        ([*LONG, [r"one\ntwo", "eins"]],
            r"rows with escapes such as \n or \t, kept as text: 1, first in line 1,201"),
        (ROWS, ""),
        (LONG, ""),
        ([["Hi", "Hey"], ["go", "geh"], *ROWS], ""),
        ([["Hi", "Hey"], *LONG[:900]], ""),
        ([["English", "Englisch"], *PHRASES], ""),
        ([["Hi", "Hey"], *LONG, ["go", "geh"], ["No", "Nein"], ["Yes", "Ja"]], ""),
        ([['"Yes," he said.', "a."], *ROWS], ""),
        ([["1", ""], *([str(i), str(i)] for i in range(999)), ["x", "y"]], ""),  # is for the filter
    ],
)  # fmt: skip
def test_a_table_that_is_not_quite_one_is_warned_of(
    rows: list[list[str]], message: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A warning names file, line and what was done, wherever in the file the row is."""
    assert len(table(rows, tmp_path)) == len(rows)
    assert caplog.messages == ([f"{tmp_path / 'x.tsv'}: {message}"] if message else [])


def test_no_row_of_a_corpus_looks_like_a_header(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """An alarm that comes by chance is not heard, wherever a table begins and however short it is."""
    path = ROOT / "data" / "tatoeba-en-de" / "valid.tsv.xz"
    pairs = list(file_part([path], (0, 1), ("en", "de")).pairs)
    assert not any(
        is_heading(pair, languages) for pair in pairs for languages in (("en", "de"), ("de", "en"))
    )
    dice = random.Random(1)
    for rows in (3, 9, 50):
        for _ in range(100):
            table([list(pair) for pair in dice.sample(pairs, rows)], tmp_path)
    assert "header" not in caplog.text


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([[row[0], ""] for row in ROWS], "column 1 is empty in all 12 rows"),
        ([["0.75", row[0]] for row in ROWS], "column 0 has only numbers"),
        ([[row[0], row[0]] for row in LONG], "both columns are the same in all 1,200 rows"),
    ],
)
def test_a_table_that_cannot_be_meant_is_refused(rows: list[list[str]], message: str, tmp_path: Path) -> None:
    """Such columns hold no pairs: the user has named the wrong columns or the wrong file."""
    with pytest.raises(ValueError, match=message):
        table(rows, tmp_path)


def test_characters_that_are_seldom_meant_are_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A file with carriage returns as its line ends would be one long sentence, and nobody would know."""
    kind = r"line ends other than \n, which end no sentence"
    read_two(tmp_path, b"one\rtwo\rthree\r", "a\u00a0b\ttab\n".encode())
    assert caplog.messages == [f"{tmp_path / 'a.en'}: {kind}: 2, first in line 1"]
    caplog.clear()
    read_two(tmp_path, b"one\ntwo\n", "a\u2028b\0c\x85\n\x07\n".encode())
    assert caplog.messages == [
        f"{tmp_path / 'a.de'}: {kind}: 2, first in line 1; control characters: 2, first in line 1"
    ]
