"""Parts that are concatenated into a split."""

import collections
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from convs2s.text.corpus.files import read_folder
from convs2s.text.sources.pair_files import Part
from convs2s.text.sources.split import write_split

FILES = ["provenance.json", "source.txt", "target.txt"]


def part(name: str, *pairs: tuple[str, str], expected: str | None = None) -> Part:
    """Return a part with these pairs."""
    return Part(name, iter(pairs), {"kind": "files", "files": []}, expected)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_parts_follow_each_other(tmp_path: Path) -> None:
    """Parts keep the order of params.yaml; the provenance has the number of lines of each."""
    write_split([part("a", ("one", "eins"), ("two", "")), part("b", ("3", "3"))], tmp_path / "o")
    assert (tmp_path / "o" / "source.txt").read_bytes() == b"one\ntwo\n3\n"
    assert (tmp_path / "o" / "target.txt").read_bytes() == b"eins\n\n3\n"
    provenance = json.loads((tmp_path / "o" / "provenance.json").read_text())
    assert provenance["lines"] == 3
    assert [source["lines"] for source in provenance["sources"]] == [2, 1]
    assert provenance["sources"][1]["pairs_sha256"] == hashlib.sha256(b"3\t3\n").hexdigest()


def test_every_pair_is_equally_likely_in_a_sample(tmp_path: Path) -> None:
    """Pairs of all parts stay together and in order; another run draws the same."""
    pairs = [(f"{i:04}", f"pair {i:04}") for i in range(10_000)]
    for name in ("o", "again"):
        write_split([part("a", *pairs[:5000]), part("b", *pairs[5000:])], tmp_path / name, sample=1000)
    found = list(read_folder(tmp_path / "o"))
    assert found == list(read_folder(tmp_path / "again"))
    assert len(found) == 1000
    assert found == sorted(set(found) & set(pairs))
    tenths = collections.Counter(int(source) // 1000 for source, _ in found)
    assert all(60 < tenths[tenth] < 140 for tenth in range(10))  # 100, with a standard deviation of 9.5
    assert json.loads((tmp_path / "o" / "provenance.json").read_text())["lines"] == 1000
    assert names(tmp_path / "o") == FILES


def test_a_sample_may_take_all_pairs_but_no_more(tmp_path: Path) -> None:
    """The message says how many there are."""
    pairs = [(str(i), str(i)) for i in range(5)]
    write_split([part("a", *pairs)], tmp_path / "o", sample=5)
    assert list(read_folder(tmp_path / "o")) == pairs
    with pytest.raises(
        ValueError, match=r"download\.train_pairs: expected at most 5, .*found 6\. null takes all"
    ):
        write_split([part("a", *pairs)], tmp_path / "o", sample=6)


def test_result_replaces_the_old_one_only_once_complete(tmp_path: Path) -> None:
    """A failure halfway must leave the old result, and no other files."""

    def broken() -> Iterator[tuple[str, str]]:
        yield "new", "neu"
        raise ValueError("the disk has gone")

    write_split([part("a", ("old", "alt"))], tmp_path / "o")
    with pytest.raises(ValueError, match="the disk has gone"):
        write_split([Part("b", broken(), {})], tmp_path / "o")
    assert (tmp_path / "o" / "source.txt").read_bytes() == b"old\n"
    assert names(tmp_path) == ["o"]
    write_split([part("a", ("new", "neu"))], tmp_path / "o")
    assert (tmp_path / "o" / "source.txt").read_bytes() == b"new\n"


def test_part_without_pairs_is_an_error(tmp_path: Path) -> None:
    """An empty file is more likely a mistake than intended."""
    with pytest.raises(ValueError, match=r"a\.en and a\.de has no sentence pairs.*is it the right file"):
        write_split([part("a.en and a.de")], tmp_path / "o")


def test_pairs_with_another_hash_are_an_error(tmp_path: Path) -> None:
    """mtdata verifies nothing itself; the hash is over 'source TAB target LF' lines."""
    right = hashlib.sha256(b"one\teins\n").hexdigest()
    write_split([part("a", ("one", "eins"), expected=right)], tmp_path / "o")
    with pytest.raises(ValueError, match=f"a: expected sha256 {right} of its pairs, found .* of 1 pair"):
        write_split([part("a", ("one", "zwei"), expected=right)], tmp_path / "p")
    assert not (tmp_path / "p").exists()
