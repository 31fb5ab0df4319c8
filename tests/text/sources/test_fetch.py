"""Mirrors, verification, and files kept between runs."""

import hashlib
import re
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

import pytest

from convs2s.text.sources import fetch as fetch_module
from convs2s.text.sources.fetch import fetch
from tests.text.sources.conftest import Site

CONTENT = b"0123456789" * 500
SHA256 = hashlib.sha256(CONTENT).hexdigest()


def test_second_mirror_is_tried_if_the_first_lacks_the_file(site: Site, tmp_path: Path) -> None:
    """Mirrors are tried in turn, so one dead link does not stop the stage."""
    site.files["there/a.txt"] = CONTENT
    path = fetch([site.url("gone/a.txt"), site.url("there/a.txt")], SHA256, tmp_path / "own", tmp_path)
    assert path.read_bytes() == CONTENT
    assert [name for name, _ in site.asked] == ["/gone/a.txt", "/there/a.txt"]


def test_mirror_with_another_file_is_skipped(site: Site, tmp_path: Path) -> None:
    """A wrong hash rules out only that mirror; the next one starts from the beginning."""
    site.files |= {"bad/a.txt": b"9" * 40, "good/a.txt": CONTENT}
    path = fetch([site.url("bad/a.txt"), site.url("good/a.txt")], SHA256, tmp_path / "own", tmp_path)
    assert path.read_bytes() == CONTENT
    assert site.asked == [("/bad/a.txt", None), ("/good/a.txt", None)]


@pytest.mark.fault("security")
def test_wrong_sha256_names_both_hashes_and_deletes_the_file(site: Site, tmp_path: Path) -> None:
    """A later run must not mistake the wrong file for the right one."""
    site.files["a.txt"] = b"something else"
    found = hashlib.sha256(b"something else").hexdigest()
    with pytest.raises(ValueError, match=f"{found}, wanted {SHA256}") as caught:
        fetch([site.url("a.txt")], SHA256, tmp_path / "own", tmp_path)
    assert "own/a.txt may hold it instead" in str(caught.value)
    assert [path.suffix for path in tmp_path.iterdir()] == [".lock"]


def test_no_mirror_gives_each_reason(site: Site, tmp_path: Path) -> None:
    """The user must see why each mirror failed."""
    site.statuses = [404, 403]
    with pytest.raises(ConnectionError) as caught:
        fetch([site.url("one/a.txt"), site.url("two/a.txt")], SHA256, tmp_path / "own", tmp_path)
    message = str(caught.value)
    assert message.startswith("a.txt could not be fetched:")
    assert re.search(r"one/a\.txt: HTTP 404.*\n.*two/a\.txt: HTTP 403", message)
    assert "partial downloads are kept and resumed" in message


def test_fetched_file_is_not_fetched_again(site: Site, tmp_path: Path) -> None:
    """A second run, or another split's stage, finds it among the downloads."""
    site.files["a.txt"] = CONTENT
    first = fetch([site.url("a.txt")], SHA256, tmp_path / "own", tmp_path)
    assert fetch([site.url("a.txt")], SHA256, tmp_path / "own", tmp_path) == first
    assert len(site.asked) == 1


def test_damaged_download_is_fetched_again(site: Site, tmp_path: Path) -> None:
    """DVC does not track the downloads, so the hash is checked at every use."""
    site.files["a.txt"] = CONTENT
    path = fetch([site.url("a.txt")], SHA256, tmp_path / "own", tmp_path)
    path.write_bytes(CONTENT[:100])
    fetch([site.url("a.txt")], SHA256, tmp_path / "own", tmp_path)
    assert path.read_bytes() == CONTENT
    assert len(site.asked) == 2


def test_own_file_is_used_instead_of_the_network(site: Site, tmp_path: Path) -> None:
    """A machine without network works from a folder with the same files."""
    own = tmp_path / "own"
    own.mkdir()
    (own / "a.txt").write_bytes(CONTENT)
    assert fetch([site.url("a.txt")], SHA256, own, tmp_path / "downloads") == own / "a.txt"
    assert site.asked == []
    assert not (tmp_path / "downloads").exists()


@pytest.mark.fault("security")
def test_own_file_with_another_hash_is_not_used(
    site: Site, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A file of the same name may be another version; a warning says why it is not used."""
    own = tmp_path / "own"
    own.mkdir()
    (own / "a.txt").write_bytes(b"an older version")
    site.files["a.txt"] = CONTENT
    assert fetch([site.url("a.txt")], SHA256, own, tmp_path / "downloads").read_bytes() == CONTENT
    assert (
        f"own/a.txt is not used: its sha256 is {hashlib.sha256(b'an older version').hexdigest()}"
        in caplog.text
    )


def test_part_from_a_killed_run_is_resumed(site: Site, tmp_path: Path) -> None:
    """The run left a .part file named by the hash, so only the rest is requested."""
    site.files["a.txt"] = CONTENT
    (tmp_path / f"{SHA256}.part").write_bytes(CONTENT[:1234])
    assert fetch([site.url("a.txt")], SHA256, tmp_path / "own", tmp_path).read_bytes() == CONTENT
    assert site.asked == [("/a.txt", "bytes=1234-")]


def test_whole_part_from_a_killed_run_needs_no_network(site: Site, tmp_path: Path) -> None:
    """The run was killed between the last byte and the rename, so nothing is left to fetch."""
    (tmp_path / f"{SHA256}.part").write_bytes(CONTENT)
    assert fetch([site.url("a.txt")], SHA256, tmp_path / "own", tmp_path).read_bytes() == CONTENT
    assert site.asked == []


@pytest.mark.parametrize("rubbish", [b"x" * 1234, b"x" * 6000])
def test_rubbish_in_a_part_is_replaced(site: Site, tmp_path: Path, rubbish: bytes) -> None:
    """The same mirror gets a second chance from zero if the resumed part turns out wrong or too long."""
    site.files["a.txt"] = CONTENT
    (tmp_path / f"{SHA256}.part").write_bytes(rubbish)
    assert fetch([site.url("a.txt")], SHA256, tmp_path / "own", tmp_path).read_bytes() == CONTENT
    assert site.asked == [("/a.txt", f"bytes={len(rubbish)}-"), ("/a.txt", None)]


def test_two_stages_fetch_a_file_once(site: Site, tmp_path: Path) -> None:
    """Two splits may need the same archive at once; the second stage waits, and then finds it."""
    site.files["a.txt"] = CONTENT
    with ThreadPoolExecutor(2) as pool:
        with fetch_module.locked(tmp_path / f"{SHA256}.lock"):  # both find the lock held
            both = [
                pool.submit(fetch, [site.url("a.txt")], SHA256, tmp_path / "own", tmp_path) for _ in range(2)
            ]
            wait(both, timeout=0.2)
            assert site.asked == []
        assert [future.result().read_bytes() for future in both] == [CONTENT, CONTENT]
    assert len(site.asked) == 1


def test_md5_is_checked_where_only_that_is_known(site: Site, tmp_path: Path) -> None:
    """WMT's test sets come with MD5 only; the kind of digest follows from its length."""
    site.files["a.txt"] = CONTENT
    md5 = hashlib.md5(CONTENT).hexdigest()
    assert fetch([site.url("a.txt")], md5, tmp_path / "own", tmp_path).name == f"{md5}.a.txt"
    site.files["a.txt"] = b"something else"
    with pytest.raises(ValueError, match=f"md5 is .*, wanted {md5[::-1]}"):
        fetch([site.url("a.txt")], md5[::-1], tmp_path / "own", tmp_path)


def test_without_a_digest_any_file_is_accepted_and_its_hash_logged(
    site: Site, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Users can then put the hash into params.yaml; the file is not fetched again."""
    site.files["a.txt"] = CONTENT
    paths = [fetch([site.url("a.txt")], None, tmp_path / "own", tmp_path / "downloads") for _ in range(2)]
    assert paths[0] == paths[1]
    assert paths[0].read_bytes() == CONTENT
    assert len(site.asked) == 1
    (record,) = caplog.records
    assert f"a.txt is not verified, because its checksum is unknown; its sha256 is {SHA256}" in record.message
    assert "put that into params.yaml instead of null" in record.message


@pytest.mark.fault("security")
def test_without_a_digest_parts_of_mirrors_are_never_mixed(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of one mirror's file and half of another's would go unnoticed."""
    monkeypatch.setattr("convs2s.text.sources.transfer.ATTEMPTS", 1)
    site.files |= {"one/a.txt": CONTENT, "two/a.txt": b"other " * 900}
    urls = [site.url("one/a.txt"), site.url("two/a.txt")]
    site.breaks = [1000, 0]  # then the first mirror sends nothing
    assert fetch(urls, None, tmp_path / "own", tmp_path / "both").read_bytes() == b"other " * 900
    site.breaks = [1000, 0]
    with pytest.raises(ConnectionError, match=r"Check the network, and urls in params\.yaml"):
        fetch(urls[:1], None, tmp_path / "own", tmp_path / "one")
    assert fetch(urls[:1], None, tmp_path / "own", tmp_path / "one").read_bytes() == CONTENT
    assert site.asked[-1] == ("/one/a.txt", "bytes=1000-")


def test_unverified_own_file_is_used(site: Site, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Without a digest, the name alone decides, and a warning is logged."""
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "a.txt").write_bytes(CONTENT)
    assert fetch([site.url("a.txt")], None, tmp_path / "own", tmp_path) == tmp_path / "own" / "a.txt"
    assert site.asked == []
    assert SHA256 in caplog.text
