"""Parts that are concatenated into a split."""

import collections
import json
from pathlib import Path

import pytest

from convs2s.base.files import read_folder
from convs2s.text.sources.pair_files import Part
from convs2s.text.sources.split import write_split


def part(name: str, *pairs: tuple[str, str]) -> Part:
    """Return a part with these pairs."""
    return Part(name, iter(pairs), {"kind": "files", "files": []})


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


@pytest.mark.parametrize(
    ("second", "sample", "message"),
    [
        ([], None, r"b has no sentence pairs.*is it the right file"),
        ([("3", "3")], 3, r"download\.train\.pairs: expected at most 2, .*found 3\. null takes all"),
    ],
)
def test_unfit_parts_are_errors_and_keep_the_old_split(
    tmp_path: Path, second: list[tuple[str, str]], sample: int | None, message: str
) -> None:
    """An empty part is a wrong file; a sample cannot have more pairs than there are."""
    first = ("one", "eins")
    write_split([part("a", first)], tmp_path / "o", sample=1)
    with pytest.raises(ValueError, match=message):
        write_split([part("a", first), part("b", *second)], tmp_path / "o", sample=sample)
    assert list(read_folder(tmp_path / "o")) == [first]
    assert list(tmp_path.iterdir()) == [tmp_path / "o"]
