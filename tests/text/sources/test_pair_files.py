"""Pairs from two files, or from one TSV."""

import bz2
import codecs
import gzip
import lzma
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from backports import zstd

from convs2s.text.counted import counted
from convs2s.text.sources.pair_files import file_part
from convs2s.text.sources.part import Part

PACK: dict[str, Callable[[bytes], bytes]] = {
    "": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress, ".zst": zstd.compress
}  # fmt: skip


def two_files(folder: Path, source: bytes, target: bytes) -> Part:
    """Open a corpus of two files with these contents."""
    (folder / "a.en").write_bytes(source)
    (folder / "a.de").write_bytes(target)
    return file_part([folder / "a.en", folder / "a.de"], None)


def texts(part: Part) -> list[tuple[str, str]]:
    """Read a part's pairs."""
    return [(pair.source, pair.target) for pair in part.pairs]


@pytest.mark.parametrize("suffix", PACK)
def test_two_files_are_read_in_every_compression(tmp_path: Path, suffix: str) -> None:
    """The name decides on the compression; only one side may be compressed."""
    (tmp_path / f"a{suffix}").write_bytes(PACK[suffix]("one\nzwölf\n".encode()))
    (tmp_path / "b").write_bytes(b"eins\nzwei\n")
    part = file_part([tmp_path / f"a{suffix}", tmp_path / "b"], None)
    assert texts(part) == [("one", "eins"), ("zwölf", "zwei")]


@pytest.mark.parametrize("suffix", PACK)
def test_tsv_is_read_in_every_compression(tmp_path: Path, suffix: str) -> None:
    """Columns are given as source and target, counting from 0; others are ignored."""
    (tmp_path / f"a.tsv{suffix}").write_bytes(PACK[suffix](b"1\teins\tone\n2\tzwei\ttwo\n"))
    assert texts(file_part([tmp_path / f"a.tsv{suffix}"], (2, 1))) == [("one", "eins"), ("two", "zwei")]


def test_only_line_feeds_end_a_line(tmp_path: Path) -> None:
    r"""U+2028, \x0b and \x85 occur within sentences of crawled text; cutting there would shift all pairs."""
    part = two_files(tmp_path, "a\u2028b\x0bc\x85d\n".encode(), b"e\rf\n")
    assert texts(part) == [("a\u2028b\x0bc\x85d", "e\rf")]


def test_windows_line_ends_and_byte_order_marks_are_removed(tmp_path: Path) -> None:
    """Concatenated files have them inside, too; within a line, U+FEFF is a character."""
    part = two_files(tmp_path, b"\xef\xbb\xbfone\r\n\xef\xbb\xbftwo\r\n", "ei\ufeffns\nzwei\n".encode())
    assert texts(part) == [("one", "ei\ufeffns"), ("two", "zwei")]


def test_last_line_needs_no_end(tmp_path: Path) -> None:
    """Some editors omit it; the number of lines must not change."""
    assert texts(two_files(tmp_path, b"one\ntwo", b"eins\nzwei\n")) == [("one", "eins"), ("two", "zwei")]


def test_quotes_in_a_tsv_are_characters(tmp_path: Path) -> None:
    """Sentences contain quotes; a CSV reader would join lines up to the next quote."""
    (tmp_path / "a.tsv").write_bytes(b'"one\t"eins\ntwo"\tzwei\n')
    assert texts(file_part([tmp_path / "a.tsv"], (0, 1))) == [('"one', '"eins'), ('two"', "zwei")]


@pytest.mark.parametrize(("source", "target"), [(b"a\nb\nc\n", b"x\n"), (b"a\n", b"x\ny\nz\n")])
def test_unequal_lines_name_both_files_and_counts(tmp_path: Path, source: bytes, target: bytes) -> None:
    """All pairs after the missing line would be wrong."""
    found, other = counted(source.count(b"\n"), "line"), target.count(b"\n")
    with pytest.raises(ValueError, match=rf"a\.en has {found} but .*a\.de has {other}\."):
        texts(two_files(tmp_path, source, target))


def test_missing_file_is_named(tmp_path: Path) -> None:
    """The check comes before anything is read."""
    (tmp_path / "a.en").write_bytes(b"one\n")
    with pytest.raises(FileNotFoundError, match=r"a\.de does not exist.*looked up in download\.folder"):
        file_part([tmp_path / "a.en", tmp_path / "a.de"], None)


@pytest.mark.parametrize("suffix", PACK)
def test_compressed_files_may_be_concatenated(tmp_path: Path, suffix: str) -> None:
    """`cat a.zst b.zst` and parallel compressors write files of several parts, some of them empty."""
    (tmp_path / f"a.tsv{suffix}").write_bytes(b"".join(map(PACK[suffix], (b"1\t2\n", b"", b"3\t4\n"))))
    assert texts(file_part([tmp_path / f"a.tsv{suffix}"], (0, 1))) == [("1", "2"), ("3", "4")]


@pytest.mark.parametrize("kept", [3, 5000, -1])
@pytest.mark.parametrize("suffix", [suffix for suffix in PACK if suffix])
def test_truncated_file_is_an_error(tmp_path: Path, suffix: str, kept: int) -> None:
    """A broken download must not pass for a shorter corpus, even if all of its text has arrived."""
    text = "".join(f"sentence {i} {i * i * 7919}\n" for i in range(5000)).encode()
    (tmp_path / f"a.en{suffix}").write_bytes(PACK[suffix](text)[:kept])
    (tmp_path / "a.de").write_bytes(text)
    with pytest.raises(ValueError, match=re.escape(f"a.en{suffix} cannot be read past line")):
        texts(file_part([tmp_path / f"a.en{suffix}", tmp_path / "a.de"], None))


@pytest.mark.parametrize("suffix", [suffix for suffix in PACK if suffix])
def test_damaged_file_is_an_error(tmp_path: Path, suffix: str) -> None:
    """Each compression fails in its own way, but the user sees one message."""
    damaged = bytearray(PACK[suffix]("".join(f"sentence {i * i * 7919}\n" for i in range(5000)).encode()))
    damaged[len(damaged) // 2 : len(damaged) // 2 + 20] = b"\xff" * 20
    (tmp_path / f"a.tsv{suffix}").write_bytes(damaged)
    with pytest.raises(ValueError, match=re.escape(f"a.tsv{suffix} cannot be read past line")):
        texts(file_part([tmp_path / f"a.tsv{suffix}"], (0, 0)))


def test_other_encodings_are_an_error(tmp_path: Path) -> None:
    """The message names the line that is not UTF-8, and how to convert Latin-1."""
    with pytest.raises(ValueError, match=r"a\.de, line 2: byte 2 is 0xdf, which is not UTF-8.*iconv"):
        texts(
            two_files(tmp_path, b"one\ntwo\n", "eins\nweiß\n".encode("latin-1").replace(b"ei\xdf", b"e\xdf"))
        )


@pytest.mark.parametrize("mark", [codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE])
def test_utf16_is_recognized(tmp_path: Path, mark: bytes) -> None:
    """By its byte order mark, which Windows tools write; taken for Latin-1 it would become garbage."""
    text = "eins\n".encode("utf-16-le" if mark == codecs.BOM_UTF16_LE else "utf-16-be")
    with pytest.raises(ValueError, match=r"a\.de, line 1: byte 0 is .* UTF-8.*: iconv -f utf-16 -t utf-8\."):
        texts(two_files(tmp_path, b"one\n", mark + text))
    with pytest.raises(ValueError, match=r"a\.de, line 2: .* UTF-8.*: iconv -f latin1 -t utf-8\."):
        texts(two_files(tmp_path, b"one\ntwo\n", b"eins\n" + mark + b"\n"))


def test_short_line_of_a_tsv_is_an_error(tmp_path: Path) -> None:
    """The message has the line number and the number of columns found."""
    (tmp_path / "a.tsv").write_bytes(b"one\teins\ntwo\n")
    with pytest.raises(ValueError, match=r"a\.tsv, line 2: 1 tab-separated column\(s\), wanted at least 2"):
        texts(file_part([tmp_path / "a.tsv"], (0, 1)))


def test_provenance_has_names_and_hashes_only(tmp_path: Path) -> None:
    """Folders differ between machines, so with them DVC would take the same data for new data."""
    part = two_files(tmp_path, b"abc", b"abc")
    sha256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"  # FIPS 180-2, appendix B.1
    assert part.provenance == {
        "kind": "files",
        "files": [{"name": "a.en", "sha256": sha256}, {"name": "a.de", "sha256": sha256}],
    }
