"""Parts that are concatenated into a split."""

import collections
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from convs2s.text.corpus.files import read_folder
from convs2s.text.sources.pair_files import Part, RawPair
from convs2s.text.sources.split import write_split


def part(name: str, *pairs: RawPair, expected: str | None = None) -> Part:
    """Return a part with these pairs."""
    return Part(name, iter(pairs), {"kind": "files", "files": []}, expected)


def test_parts_follow_each_other(tmp_path: Path) -> None:
    """Parts keep the order of params.yaml; the provenance has the number of lines of each."""
    write_split(
        [part("a", RawPair("one", "eins"), RawPair("two", "")), part("b", RawPair("3", "3"))], tmp_path / "o"
    )
    assert (tmp_path / "o" / "source.txt").read_bytes() == b"one\ntwo\n3\n"
    assert (tmp_path / "o" / "target.txt").read_bytes() == b"eins\n\n3\n"
    provenance = json.loads((tmp_path / "o" / "provenance.json").read_text())
    assert provenance["lines"] == 3
    assert [source["lines"] for source in provenance["sources"]] == [2, 1]
    assert provenance["sources"][1]["pairs_sha256"] == hashlib.sha256(b"3\t3\n").hexdigest()


def letters(count: int) -> list[RawPair]:
    """Return pairs of a letter and its capital."""
    return [RawPair(chr(97 + i), chr(65 + i)) for i in range(count)]


def test_a_sample_keeps_pairs_together_and_in_order(tmp_path: Path) -> None:
    """It is drawn from all parts, and another run draws the same."""
    for name in ("o", "again"):
        parts = [part("a", *letters(20)[:10]), part("b", *letters(20)[10:])]
        write_split(parts, tmp_path / name, sample=9)
    found = list(read_folder(tmp_path / "o"))
    assert len(found) == 9
    assert found == sorted(found)
    assert found != [pair[:2] for pair in letters(9)]
    assert all(target == source.upper() for source, target in found)
    assert found == list(read_folder(tmp_path / "again"))
    assert json.loads((tmp_path / "o" / "provenance.json").read_text())["lines"] == 9
    assert sorted(path.name for path in (tmp_path / "o").iterdir()) == [
        "provenance.json",
        "source.txt",
        "target.txt",
    ]


def test_every_pair_is_equally_likely_in_a_sample(tmp_path: Path) -> None:
    """Of a corpus sorted by length, a sample has all lengths: each tenth is drawn about equally often."""
    pairs = [RawPair(str(i), str(i)) for i in range(10_000)]
    write_split([part("a", *pairs)], tmp_path / "o", sample=1000)
    tenths = collections.Counter(int(source) // 1000 for source, _ in read_folder(tmp_path / "o"))
    assert all(60 < tenths[tenth] < 140 for tenth in range(10))  # 100, with a standard deviation of 9.5


def test_a_sample_may_take_all_pairs_but_no_more(tmp_path: Path) -> None:
    """The message says how many there are."""
    write_split([part("a", *letters(5))], tmp_path / "o", sample=5)
    assert len(list(read_folder(tmp_path / "o"))) == 5
    with pytest.raises(
        ValueError, match=r"download\.train_pairs: expected at most 5, .*found 6\. null takes all"
    ):
        write_split([part("a", *letters(5))], tmp_path / "o", sample=6)


def test_no_parts_give_empty_files(tmp_path: Path) -> None:
    """With `valid: []` the filter takes every N-th training pair, but its inputs must still exist."""
    write_split([], tmp_path / "o")
    assert sorted(path.name for path in (tmp_path / "o").iterdir()) == [
        "provenance.json", "source.txt", "target.txt"
    ]  # fmt: skip
    assert (tmp_path / "o" / "source.txt").read_bytes() == (tmp_path / "o" / "target.txt").read_bytes() == b""


def test_result_replaces_the_old_one_only_once_complete(tmp_path: Path) -> None:
    """A failure halfway must leave the old result, and no other files."""

    def broken() -> Iterator[RawPair]:
        yield RawPair("new", "neu")
        raise ValueError("the disk has gone")

    write_split([part("a", RawPair("old", "alt"))], tmp_path / "o")
    with pytest.raises(ValueError, match="the disk has gone"):
        write_split([Part("b", broken(), {})], tmp_path / "o")
    assert (tmp_path / "o" / "source.txt").read_bytes() == b"old\n"
    assert [path.name for path in tmp_path.iterdir()] == ["o"]
    write_split([part("a", RawPair("new", "neu"))], tmp_path / "o")
    assert (tmp_path / "o" / "source.txt").read_bytes() == b"new\n"


def test_part_without_pairs_is_an_error(tmp_path: Path) -> None:
    """An empty file is more likely a mistake than intended."""
    with pytest.raises(ValueError, match=r"a\.en and a\.de has no sentence pairs.*is it the right file"):
        write_split([part("a.en and a.de")], tmp_path / "o")


def test_pairs_with_another_hash_are_an_error(tmp_path: Path) -> None:
    """mtdata verifies nothing itself; the hash is over 'source TAB target LF' lines."""
    right = hashlib.sha256(b"one\teins\n").hexdigest()
    write_split([part("a", RawPair("one", "eins"), expected=right)], tmp_path / "o")
    with pytest.raises(ValueError, match=f"a: expected sha256 {right} of its pairs, found .* of 1 pair"):
        write_split([part("a", RawPair("one", "zwei"), expected=right)], tmp_path / "p")
    assert not (tmp_path / "p").exists()
