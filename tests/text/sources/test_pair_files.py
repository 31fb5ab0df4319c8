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

from convs2s.text.sources.pair_files import Part, file_part

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
def test_every_compression_is_read(tmp_path: Path, suffix: str) -> None:
    """The name decides; parallel compressors write files of several parts, some of them empty."""
    (tmp_path / f"a{suffix}").write_bytes(b"".join(map(PACK[suffix], (b"one\n", b"", "zwölf\n".encode()))))
    (tmp_path / "b").write_bytes(b"eins\nzwei\n")
    part = file_part([tmp_path / f"a{suffix}", tmp_path / "b"], None)
    assert texts(part) == [("one", "eins"), ("zwölf", "zwei")]


def test_columns_of_a_tsv_are_counted_from_0(tmp_path: Path) -> None:
    """They are given as source and target; others are ignored."""
    (tmp_path / "a.tsv.gz").write_bytes(gzip.compress(b"1\teins\tone\n2\tzwei\ttwo\n"))
    assert texts(file_part([tmp_path / "a.tsv.gz"], (2, 1))) == [("one", "eins"), ("two", "zwei")]


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


def test_missing_file_is_named(tmp_path: Path) -> None:
    """The check comes before anything is read."""
    (tmp_path / "a.en").write_bytes(b"one\n")
    with pytest.raises(FileNotFoundError, match=r"a\.de does not exist.*looked up in download\.folder"):
        file_part([tmp_path / "a.en", tmp_path / "a.de"], None)


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        (b"a\nb\nc\n", b"x\n", r"a\.en has 3 lines but .*a\.de has 1\."),
        (b"a\n", b"x\ny\nz\n", r"a\.en has 1 line but .*a\.de has 3\."),
        # By its byte order mark, which Windows tools write; taken for Latin-1 it would become garbage.
        (b"a\n", codecs.BOM_UTF16_LE + b"e\0\n\0", r"a\.de, line 1: byte 0 is .* UTF-8.*: iconv -f utf-16 "),
        (b"a\n", codecs.BOM_UTF16_BE + b"\0e\0\n", r"a\.de, line 1: byte 0 is .* UTF-8.*: iconv -f utf-16 "),
        (b"a\nb\n", b"x\nw\xdf\n", r"a\.de, line 2: byte 1 is 0xdf, which is not UTF-8.*: iconv -f latin1 "),
    ],
)
def test_unfit_files_are_an_error(tmp_path: Path, source: bytes, target: bytes, message: str) -> None:
    """All pairs after a missing line would be wrong."""
    with pytest.raises(ValueError, match=message):
        texts(two_files(tmp_path, source, target))


@pytest.mark.parametrize("kept", [3, 5000, -1])
@pytest.mark.parametrize("suffix", [suffix for suffix in PACK if suffix])
def test_truncated_file_is_an_error(tmp_path: Path, suffix: str, kept: int) -> None:
    """A broken download must not pass for a shorter corpus, even if all of its text has arrived."""
    text = "".join(f"sentence {i} {i * i * 7919}\n" for i in range(5000)).encode()
    (tmp_path / f"a.en{suffix}").write_bytes(PACK[suffix](text)[:kept])
    (tmp_path / "a.de").write_bytes(text)
    with pytest.raises(ValueError, match=re.escape(f"a.en{suffix} cannot be read past line")):
        texts(file_part([tmp_path / f"a.en{suffix}", tmp_path / "a.de"], None))


def test_short_line_of_a_tsv_is_an_error(tmp_path: Path) -> None:
    """The message has the line number and the number of columns found."""
    (tmp_path / "a.tsv").write_bytes(b"one\teins\ntwo\n")
    with pytest.raises(ValueError, match=r"a\.tsv, line 2: expected at least 2 tab-separated .* found 1\."):
        texts(file_part([tmp_path / "a.tsv"], (0, 1)))


def test_provenance_has_names_and_hashes_only(tmp_path: Path) -> None:
    """Folders differ between machines, so with them DVC would take the same data for new data."""
    part = two_files(tmp_path, b"abc", b"abc")
    sha256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"  # FIPS 180-2, appendix B.1
    assert part.provenance == {
        "kind": "files",
        "files": [{"name": "a.en", "sha256": sha256}, {"name": "a.de", "sha256": sha256}],
    }
