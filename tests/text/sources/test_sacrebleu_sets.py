"""Test sets by name: the real sacreBLEU, with a test set of ours on a local server."""

import hashlib
from pathlib import Path

import pytest
from sacrebleu.dataset import DATASETS
from sacrebleu.dataset.plain_text import PlainTextDataset

from convs2s.text.sources.sacrebleu_sets import sacrebleu_part
from tests.web import Site, make_archive


@pytest.fixture
def own_set(site: Site, monkeypatch: pytest.MonkeyPatch) -> PlainTextDataset:
    """Register a test set own/dev with two references, whose archive is on the server."""
    files = {"dev.en": b"one\ntwo\n", "dev.de": b"eins\nzwei\n", "dev2.de": b"1\n2\n"}
    site.files["dev.tar.gz"] = make_archive("dev.tar.gz", files)
    dataset = PlainTextDataset(
        "own/dev",
        data=[site.url("dev.tar.gz")],
        md5=[hashlib.md5(site.files["dev.tar.gz"]).hexdigest()],
        langpairs={"en-de": ["dev.en", "dev.de", "dev2.de"]},
    )
    monkeypatch.setitem(DATASETS, "own/dev", dataset)
    monkeypatch.setattr(dataset, "fieldnames", lambda _: ["src", "ref:A", "ref:B"])  # as WMT's sets have
    return dataset


PAIRS = [("one", "eins"), ("two", "zwei")]


@pytest.mark.usefixtures("own_set")
def test_a_set_is_read_and_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """WMT's newer sets have several references; a warning says that one of them is left out."""
    part = sacrebleu_part("own/dev", ("en", "de"), tmp_path / "downloads")
    assert list(part.pairs) == PAIRS
    assert "own/dev en-de has 2 references, of which the first is used" in caplog.messages
    assert part.provenance["kind"] == "sacrebleu"
    assert part.provenance["name"] == "own/dev"


@pytest.mark.usefixtures("own_set")
def test_a_set_is_fetched_once(site: Site, tmp_path: Path) -> None:
    """A run without network has what an earlier one fetched."""
    for _ in range(2):
        assert list(sacrebleu_part("own/dev", ("en", "de"), tmp_path / "downloads").pairs) == PAIRS
    assert len(site.asked) == 1


@pytest.mark.usefixtures("own_set")
def test_a_failed_transfer_leaves_nothing(site: Site, tmp_path: Path) -> None:
    """After a failed MD5 check, sacreBLEU would take the file for a complete one the next time."""
    archive = site.files["dev.tar.gz"]
    site.files["dev.tar.gz"] = b"<html>Not Found</html>"
    with pytest.raises(ConnectionError, match="sacreBLEU could not fetch own/dev en-de: SystemExit"):
        sacrebleu_part("own/dev", ("en", "de"), tmp_path / "downloads")
    assert list((tmp_path / "downloads").iterdir()) == []
    site.files["dev.tar.gz"] = archive
    assert list(sacrebleu_part("own/dev", ("en", "de"), tmp_path / "downloads").pairs) == PAIRS


def test_sacrebleus_own_cache_is_left_alone(own_set: PlainTextDataset, tmp_path: Path) -> None:
    """The entry for the set is shared by the whole process, in which others may want that cache."""
    sacrebleu_part("own/dev", ("en", "de"), tmp_path / "downloads")
    assert "downloads" not in own_set._outdir


@pytest.mark.usefixtures("own_set")
@pytest.mark.parametrize(
    ("name", "languages", "message"),
    [
        ("wmt14/ful", ("en", "de"), r"no test set 'wmt14/ful' for en-de\. List .* `sacrebleu --list`"),
        ("own/dev", ("de", "en"), r"no test set 'own/dev' for de-en\. List .* --test-set NAME"),
    ],
)
def test_an_unknown_set_is_an_error(
    tmp_path: Path, name: str, languages: tuple[str, str], message: str
) -> None:
    """Parts of a name are easily forgotten, and many sets exist in one direction only."""
    with pytest.raises(ValueError, match=message):
        sacrebleu_part(name, languages, tmp_path)
