"""mtdata, replaced by a module with the same interface (that of mtdata 0.4.3 to 0.5.1)."""

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, NamedTuple

import pytest

from convs2s.text.sources.mtdata_sets import mtdata_parts

ISO = {"en": "eng", "de": "deu", "fr": "fra"}
ROWS: dict[str, list[Any]] = {
    "Test-news-1-eng-deu": [
        ("Hello", "Hallo", {"score": 1}),
        (None, "leer"),
        ("two\r\nlines\tand a tab ", "x"),
    ],
    "Test-news-1-deu-eng": [("Hallo", "Hello")],
}


class FakeId(NamedTuple):
    """mtdata.entry.DatasetId."""

    name: str
    langs: tuple[str, ...]

    @classmethod
    def parse(cls, string: str) -> "FakeId":
        parts = string.split("-")
        assert len(parts) > 3, "Dataset ID expected in another format"
        return cls(string, tuple(parts[3:]))


def check_compat_swap(pair: tuple[str, str], other: tuple[str, str]) -> tuple[bool, bool]:
    """mtdata.iso.bcp47.BCP47Tag.check_compat_swap."""
    return set(pair) == set(other), pair == tuple(reversed(other))


class FakeCache:
    """mtdata.cache.Cache."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def get_entry(self, entry: Any) -> Path:
        if "gone" in entry.did:
            raise AssertionError(404)
        return self.root / str(entry.did)


class FakeParser:
    """mtdata.parser.Parser."""

    def __init__(self, paths: Path, ext: str | None, ent: Any) -> None:
        assert paths.name == ent.did
        self.rows = ROWS[ent.did]

    def read_segs(self) -> Iterator[Any]:
        yield from self.rows


@pytest.fixture
def fake_mtdata(monkeypatch: pytest.MonkeyPatch) -> None:
    ids = [*ROWS, "Test-gone-1-eng-deu", "Test-mono-1-eng"]
    index = {FakeId.parse(name): SimpleNamespace(did=name, in_ext=None) for name in ids}
    contents: dict[str, dict[str, Any]] = {
        "mtdata": {},
        "mtdata.iso": {},
        "mtdata.cache": {"Cache": FakeCache},
        "mtdata.entry": {"DatasetId": FakeId},
        "mtdata.index": {"INDEX": index},
        "mtdata.iso.bcp47": {
            "BCP47Tag": SimpleNamespace(check_compat_swap=check_compat_swap), "bcp47": ISO.__getitem__
        },
        "mtdata.parser": {"Parser": FakeParser},
    }  # fmt: skip
    for name, members in contents.items():
        module = ModuleType(name)
        vars(module).update(members)
        monkeypatch.setitem(sys.modules, name, module)


@pytest.mark.usefixtures("fake_mtdata")
def test_pairs_are_read_without_filtering_in_our_order_of_languages(tmp_path: Path) -> None:
    """Empty sides stay because the stage filter counts them; no segment has a tab or line end."""
    ids = ["Test-news-1-eng-deu", "Test-news-1-deu-eng"]
    one, swapped = mtdata_parts(ids, {ids[1]: "0" * 64}, ("en", "de"), tmp_path)
    assert list(one.pairs) == [("Hello", "Hallo"), ("", "leer"), ("two lines and a tab", "x")]
    assert list(swapped.pairs) == [("Hello", "Hallo")]
    assert (one.expected_sha256, swapped.expected_sha256) == (None, "0" * 64)
    assert one.provenance == {"kind": "mtdata", "id": ids[0]}


@pytest.mark.usefixtures("fake_mtdata")
@pytest.mark.parametrize(
    ("name", "languages", "message"),
    [
        ("nonsense", ("en", "de"), r"'nonsense' is not an mtdata id: Dataset ID expected in another format"),
        (
            "Test-none-1-eng-deu",
            ("en", "de"),
            r"mtdata has no data set 'Test-none-1-eng-deu'.*list -l en-de",
        ),
        ("Test-mono-1-eng", ("en", "de"), r"'Test-mono-1-eng' is not in the languages en and de"),
        ("Test-news-1-eng-deu", ("en", "fr"), r"is not in the languages en and fr"),
        ("Test-gone-1-eng-deu", ("en", "de"), r"could not fetch .*: AssertionError\(404\)"),
    ],
)
def test_unfit_ids_are_errors(tmp_path: Path, name: str, languages: tuple[str, str], message: str) -> None:
    """They are found before the first transfer; the message has the command that lists all ids."""
    with pytest.raises((ValueError, ConnectionError), match=message):
        mtdata_parts([name], {}, languages, tmp_path)
    with pytest.raises(ValueError, match="sha256 names other, which is not among ids"):
        mtdata_parts([name], {"other": "0" * 64}, languages, tmp_path)


def test_missing_mtdata_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """mtdata is an optional extra; the message has the command that installs it."""
    monkeypatch.setitem(sys.modules, "mtdata", None)
    monkeypatch.setitem(sys.modules, "mtdata.entry", None)
    with pytest.raises(ValueError, match=r"pip install -e \.\[mtdata\]"):
        mtdata_parts(["Test-news-1-eng-deu"], {}, ("en", "de"), tmp_path)
