"""Folders of sentence pairs."""

import errno
from collections.abc import Iterator
from pathlib import Path

import pytest

from convs2s.text.corpus.files import PairWriter, read_folder, write_folder


def test_pairs_come_back_as_written(tmp_path: Path) -> None:
    """Only a line feed ends a sentence: Unicode's other line ends are text."""
    pairs = [("a b", "ä"), ("", "x\u2028y\x0bz\x85"), ("🙂", "")]
    write_folder(tmp_path / "pairs", iter(pairs))
    assert list(read_folder(tmp_path / "pairs")) == pairs
    assert (tmp_path / "pairs/source.txt").read_bytes() == "a b\n\n🙂\n".encode()


def test_unequal_files_are_reported_with_their_counts(tmp_path: Path) -> None:
    """After a missing line, every pair would be a wrong translation."""
    (tmp_path / "source.txt").write_text("a\nb\nc\n")
    (tmp_path / "target.txt").write_text("a\nb\n")
    with pytest.raises(
        ValueError, match=r"source\.txt has 3 lines but .*target\.txt has 2\..*translate line i"
    ):
        list(read_folder(tmp_path))


def test_a_full_disk_leaves_nothing_and_keeps_the_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Later stages would take half a corpus under the final name for the whole corpus."""

    def full(self: PairWriter, source: str, target: str) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    write_folder(tmp_path / "pairs", [("old", "alt")])
    monkeypatch.setattr(PairWriter, "write", full)
    with pytest.raises(OSError, match=r"No space left on device.*half-written.*pairs"):
        write_folder(tmp_path / "pairs", [("new", "neu")])
    assert list(read_folder(tmp_path / "pairs")) == [("old", "alt")]
    assert [path.name for path in tmp_path.iterdir()] == ["pairs"]


def test_an_error_while_reading_leaves_nothing(tmp_path: Path) -> None:
    """Pairs are produced while they are written, so an error must not leave a folder."""

    def broken() -> Iterator[tuple[str, str]]:
        yield "a", "b"
        raise ValueError("line 2 is bad")

    with pytest.raises(ValueError, match="line 2 is bad"):
        write_folder(tmp_path / "pairs", broken())
    assert list(tmp_path.iterdir()) == []
