"""A corpus of fetched files and archives."""

import gzip
import hashlib
from pathlib import Path

import pytest

from convs2s.text.sources import remote
from convs2s.text.sources.part import Part
from convs2s.text.sources.remote import Remote, remote_part
from tests.text.sources.conftest import Site
from tests.text.sources.test_unpack import make_tar, make_zip


def offer(site: Site, name: str, content: bytes) -> Remote:
    """Put a file on the server; return its entry."""
    site.files[name] = content
    return Remote([site.url(name)], hashlib.sha256(content).hexdigest())


def texts(part: Part) -> list[tuple[str, str]]:
    """Read a part's pairs."""
    return [(pair.source, pair.target) for pair in part.pairs]


def test_compressed_files_are_used_as_fetched(site: Site, tmp_path: Path) -> None:
    """They are found by the file name in their URL."""
    files = [offer(site, "x/a.en.gz", gzip.compress(b"one\n")), offer(site, "y/a.de", b"eins\n")]
    part = remote_part(files, ["a.en.gz", "a.de"], None, tmp_path / "own", tmp_path / "downloads")
    assert texts(part) == [("one", "eins")]
    assert part.provenance["kind"] == "url"
    assert part.provenance["fetched"] == [
        {"name": "a.en.gz", "sha256": files[0].digest},
        {"name": "a.de", "sha256": files[1].digest},
    ]


def test_provenance_is_the_same_from_network_and_folder(site: Site, tmp_path: Path) -> None:
    """Otherwise DVC would take the same data for new data, and rerun all later stages."""
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "a.tsv").write_bytes(b"one\teins\n")
    files = [offer(site, "a.tsv", b"one\teins\n")]
    fetched = remote_part(files, ["a.tsv"], (0, 1), tmp_path / "none", tmp_path / "downloads")
    local = remote_part(files, ["a.tsv"], (0, 1), tmp_path / "own", tmp_path / "downloads")
    assert len(site.asked) == 1
    assert (fetched.name, fetched.provenance) == (local.name, local.provenance)


def test_members_of_archives_are_found_by_their_paths(site: Site, tmp_path: Path) -> None:
    """The two sides may be in two archives, and a member may itself be compressed."""
    tar = make_tar(tmp_path / "a.tgz", {"corpus/a.en": b"one\n"}).read_bytes()
    zipped = make_zip(tmp_path / "b.zip", {"a.de.gz": gzip.compress(b"eins\n")}).read_bytes()
    files = [offer(site, "a.tgz", tar), offer(site, "b.zip", zipped)]
    names = ["corpus/a.en", "a.de.gz"]
    assert texts(remote_part(files, names, None, tmp_path / "own", tmp_path / "downloads")) == [
        ("one", "eins")
    ]
    assert (tmp_path / "downloads" / str(files[0].digest) / "corpus" / "a.en").is_file()


def test_tsv_in_an_archive(site: Site, tmp_path: Path) -> None:
    """It is read as a local TSV is."""
    archive = make_zip(tmp_path / "b.zip", {"a.tsv": b"one\teins\n"}).read_bytes()
    part = remote_part([offer(site, "b.zip", archive)], ["a.tsv"], (1, 0), tmp_path / "own", tmp_path)
    assert texts(part) == [("eins", "one")]


def test_unpacked_archive_is_not_fetched_again(site: Site, tmp_path: Path) -> None:
    """The folder exists only when complete, so users may delete the archive to save space."""
    archive = make_tar(tmp_path / "a.tar", {"a.tsv": b"one\teins\n"}).read_bytes()
    files = [offer(site, "a.tar", archive)]
    for _ in range(2):
        part = remote_part(files, ["a.tsv"], (0, 1), tmp_path / "own", tmp_path / "downloads")
        assert texts(part) == [("one", "eins")]
        (tmp_path / "downloads" / f"{files[0].digest}.a.tar").unlink(missing_ok=True)
    assert len(site.asked) == 1


def test_own_archive_is_unpacked_without_network(site: Site, tmp_path: Path) -> None:
    """A plain file with the right hash would be used in the same way."""
    own = tmp_path / "own"
    own.mkdir()
    content = make_zip(own / "b.zip", {"a.tsv": b"one\teins\n"}).read_bytes()
    part = remote_part([offer(site, "b.zip", content)], ["a.tsv"], (0, 1), own, tmp_path / "downloads")
    assert texts(part) == [("one", "eins")]
    assert site.asked == []


def test_interrupted_unpacking_starts_over(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An interruption must not leave a folder that could pass for a complete one."""
    files = [offer(site, "a.tar", make_tar(tmp_path / "a.tar", {"a.tsv": b"one\teins\n"}).read_bytes())]

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("convs2s.text.sources.unpack.copy", interrupt)
        with pytest.raises(KeyboardInterrupt):
            remote_part(files, ["a.tsv"], (0, 1), tmp_path / "own", tmp_path / "downloads")
    part = remote_part(files, ["a.tsv"], (0, 1), tmp_path / "own", tmp_path / "downloads")
    assert texts(part) == [("one", "eins")]


def test_unknown_name_shows_existing_ones(site: Site, tmp_path: Path) -> None:
    """The most similar names come first: paths in archives are long and hard to guess."""
    archive = make_tar(tmp_path / "a.tar", {"corpus/train.en": b"", "README": b""}).read_bytes()
    with pytest.raises(FileNotFoundError, match=r"'train\.en' is not among the 2 .*: corpus/train\.en"):
        remote_part([offer(site, "a.tar", archive)], ["train.en"], (0, 1), tmp_path / "own", tmp_path)


def test_long_lists_of_names_are_cut(tmp_path: Path) -> None:
    """An archive may have thousands of members."""
    places = [(f"{i:03}", tmp_path) for i in range(100)]
    with pytest.raises(FileNotFoundError) as caught:
        remote.locate("train.en", places)
    assert "100 fetched file(s)" in str(caught.value)
    assert str(caught.value).count(", 0") == remote.SHOWN - 1


def test_name_in_two_archives_is_an_error(site: Site, tmp_path: Path) -> None:
    """It would be ambiguous."""
    files = [
        offer(site, f"{name}.tar", make_tar(tmp_path / f"{name}.tar", {"a.tsv": name.encode()}).read_bytes())
        for name in ("one", "two")
    ]
    with pytest.raises(ValueError, match=r"'a\.tsv' is in 2 of the fetched files"):
        remote_part(files, ["a.tsv"], (0, 1), tmp_path / "own", tmp_path / "downloads")
