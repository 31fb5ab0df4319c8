"""Files and archives from the network: mirrors, verification, and what is kept between runs."""

import errno
import fcntl
import gzip
import hashlib
import os
import re
import zipfile
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import pooch
import pytest

from convs2s.text.sources import remote
from convs2s.text.sources.remote import RETRIES, Remote, file_name, provide, remote_part
from tests.web import Site, make_archive

CONTENT = b"0123456789" * 500
SHA256 = hashlib.sha256(CONTENT).hexdigest()
OTHER = b"another file"


def get(site: Site, folder: Path, *names: str, digest: str | None = SHA256) -> bytes:
    """Fetch a file from the given mirrors into a folder; return its content."""
    found = provide(Remote([site.url(name) for name in names], digest), folder / "own", folder / "downloads")
    ((name, path),) = found.items()
    assert name == "a.txt"
    return path.read_bytes()


def test_mirrors_are_tried_in_turn(site: Site, tmp_path: Path) -> None:
    """One dead link, or another file under the same name, does not stop the stage."""
    site.files |= {"bad/a.txt": OTHER, "good/a.txt": CONTENT}
    assert get(site, tmp_path, "gone/a.txt", "bad/a.txt", "good/a.txt") == CONTENT
    assert site.asked == ["gone/a.txt", *["bad/a.txt"] * (1 + RETRIES), "good/a.txt"]


def test_no_mirror_gives_each_reason_and_leaves_nothing(site: Site, tmp_path: Path) -> None:
    """The user must see why each mirror failed; a later run must not take a wrong file for the right one."""
    site.files["bad/a.txt"] = OTHER
    site.statuses = [404, 403]
    with pytest.raises(ConnectionError) as caught:
        get(site, tmp_path, "one/a.txt", "two/a.txt", "bad/a.txt")
    message = str(caught.value)
    assert message.startswith("a.txt could not be fetched:")
    assert re.search(r"one/a\.txt: HTTP 404.*\n.*two/a\.txt: HTTP 403", message)
    assert re.search(
        rf"bad/a\.txt: .*expected sha256:{SHA256} but got {hashlib.sha256(OTHER).hexdigest()}", message
    )
    assert "Check the network, and the urls and the checksum in params.yaml" in message
    assert message.endswith("own/a.txt may hold it instead.")
    assert [path.suffix for path in (tmp_path / "downloads").iterdir()] == [".lock"]


@pytest.mark.parametrize("digest", [SHA256, None])
@pytest.mark.parametrize(("breaks", "statuses"), [((2000, 0), ()), ((), (503, 429))])
def test_a_broken_or_refused_transfer_is_repeated_a_few_times(
    site: Site, tmp_path: Path, breaks: tuple[int, ...], statuses: tuple[int, ...], digest: str | None
) -> None:
    """Half a file must not pass for the whole, digest or not; a busy server may recover."""
    site.files["a.txt"], site.breaks = CONTENT, [400] * 4
    with pytest.raises(ConnectionError, match=r"IncompleteRead\(400 bytes read, 4600 more expected\)"):
        get(site, tmp_path, "a.txt", digest=digest)
    assert len(site.asked) == 1 + RETRIES
    site.breaks, site.statuses, site.asked = [*breaks], [*statuses], []
    assert get(site, tmp_path, "a.txt", digest=digest) == CONTENT
    assert len(site.asked) == 3


def test_fetched_file_is_used_as_long_as_it_is_right(site: Site, tmp_path: Path) -> None:
    """DVC does not track the downloads, so the digest is checked at every use."""
    site.files["a.txt"] = CONTENT
    for _ in range(2):
        assert get(site, tmp_path, "a.txt") == CONTENT
    assert len(site.asked) == 1
    (tmp_path / "downloads" / f"{SHA256}.a.txt").write_bytes(CONTENT[:100])
    assert get(site, tmp_path, "a.txt") == CONTENT
    assert len(site.asked) == 2


def test_own_file_is_used_if_it_is_right(
    site: Site, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A machine without network works from a folder; a warning says why another version is not used."""
    (tmp_path / "own").mkdir()
    own = tmp_path / "own" / "a.txt"
    own.write_bytes(CONTENT)
    assert get(site, tmp_path, "gone/a.txt") == CONTENT
    assert not site.asked
    own.write_bytes(OTHER)
    site.files["a.txt"] = CONTENT
    assert get(site, tmp_path, "a.txt") == CONTENT
    found = hashlib.sha256(OTHER).hexdigest()
    assert f"{own} is not used: expected sha256:{SHA256}, found sha256:{found}" in caplog.text


def test_two_stages_fetch_a_file_once(site: Site, tmp_path: Path) -> None:
    """Two splits may need the same archive at once; the second stage waits, and then finds it."""
    site.files["a.txt"] = CONTENT
    (tmp_path / "downloads").mkdir()
    with ThreadPoolExecutor(2) as pool:
        with (tmp_path / "downloads" / f"{SHA256}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # both find it held
            both = [pool.submit(get, site, tmp_path, "a.txt") for _ in range(2)]
            wait(both, timeout=0.2)
            assert not site.asked
        assert [future.result() for future in both] == [CONTENT, CONTENT]
    assert len(site.asked) == 1


@pytest.mark.parametrize("place", ["own", "network"])
def test_without_a_digest_any_file_is_accepted_and_its_hash_logged(
    site: Site, tmp_path: Path, caplog: pytest.LogCaptureFixture, place: str
) -> None:
    """Users can then put the hash into params.yaml; the file, here behind a redirect, is fetched once."""
    if place == "own":
        (tmp_path / "own").mkdir()
        (tmp_path / "own" / "a.txt").write_bytes(CONTENT)
    site.files["b.txt"], site.redirects["a.txt"] = CONTENT, "/b.txt"
    for _ in range(2):
        assert get(site, tmp_path, "a.txt", digest=None) == CONTENT
    assert site.asked == (["a.txt", "b.txt"] if place == "network" else [])
    assert f"a.txt is not verified, because its checksum is unknown; its sha256 is {SHA256}" in caplog.text
    assert "put that into params.yaml instead of null" in caplog.text


def test_another_archive_without_a_digest_is_unpacked_again(site: Site, tmp_path: Path) -> None:
    """The user's own may have a new version under the old name."""
    (tmp_path / "own").mkdir()
    for content in ("old", "new"):
        with zipfile.ZipFile(tmp_path / "own" / "a.zip", "w") as archive:
            archive.writestr("text", content)
        found = provide(Remote([site.url("a.zip")], None), tmp_path / "own", tmp_path / "downloads")
        assert found["text"].read_text() == content


def test_a_file_of_unknown_length_is_refused(site: Site, tmp_path: Path) -> None:
    """Without length and digest, the first half would pass for the whole file."""
    site.files["a.txt"], site.lengths, site.breaks = CONTENT, False, [2000, 2000]
    with pytest.raises(ConnectionError, match=r"does not say how long the file is.*Expected its checksum"):
        get(site, tmp_path, "a.txt", digest=None)
    assert get(site, tmp_path, "a.txt") == CONTENT  # the digest has shown that the second answer is half


def test_full_disk_stops_at_once(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other mirrors cannot help; the error names the file, and nothing is left."""

    def fill(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(remote, "transfer", fill)
    with pytest.raises(OSError, match=r"No space left on device.*Nothing was left half-written") as caught:
        get(site, tmp_path, "a.txt", "b/a.txt")
    assert caught.value.filename == str(tmp_path / "downloads" / f"{SHA256}.a.txt")
    assert [path.suffix for path in (tmp_path / "downloads").iterdir()] == [".lock"]


def test_no_message_has_a_password_or_token(
    site: Site, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Users share logs and errors; requests quotes whole URLs, also those of redirects."""
    monkeypatch.setattr(pooch.get_logger(), "handlers", [caplog.handler])
    secret = "hunter2"
    site.redirects["b.txt"] = f"ftp://me:{secret}@host/b?token={secret}"
    urls = [site.url(f"{name}?token={secret}") for name in ("a.txt", "b.txt", "a b.txt")]
    for url in [*urls, f"http://127.0.0.1:1/a.txt?token={secret}", f"http://host:port/a?token={secret}"]:
        site.statuses = [503, 404]
        with pytest.raises(ConnectionError) as failed:
            provide(Remote([url], None), tmp_path, tmp_path)
        assert secret not in str(failed.value)
        assert failed.value.__cause__ is None
    assert secret not in caplog.text
    assert f"{site.url('a.txt')}?..." in caplog.text


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://host/a/train.en.gz?download=1", "train.en.gz"),
        ("https://host/a%20b.txt", "a b.txt"),
        ("https://host/x%2F..%2Fpasswd", "passwd"),  # an escaped slash must not smuggle in a folder
        *((url, None) for url in ("https://host/", "https://host", "https://host/..", "ftp://host/a.txt")),
        *((url, None) for url in ("data:,hello", "a.en.gz")),
    ],
)
def test_file_name_is_the_last_component_of_the_path(url: str, name: str | None) -> None:
    """The name decides how the file is read; a path instead of a URL is a likely mistake."""
    if name:
        assert file_name(url) == name
        return
    with pytest.raises(ValueError, match="expected http:// or https://, and a file name at the end"):
        file_name(url)


def offer(site: Site, name: str, content: bytes) -> Remote:
    """Put a file on the server; return its entry."""
    site.files[name] = content
    return Remote([site.url(name)], hashlib.sha256(content).hexdigest())


def test_provenance_is_the_same_from_network_and_folder(site: Site, tmp_path: Path) -> None:
    """Otherwise DVC would take the same data for new data, and rerun all later stages."""
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "a.de").write_bytes(b"eins\n")
    files = [offer(site, "x/a.en.gz", gzip.compress(b"one\n")), offer(site, "y/a.de", b"eins\n")]
    parts = [
        remote_part(files, ["a.en.gz", "a.de"], None, tmp_path / folder, tmp_path / "downloads")
        for folder in ("none", "own")
    ]
    assert [list(part.pairs) for part in parts] == [[("one", "eins")]] * 2
    assert site.asked == ["x/a.en.gz", "y/a.de"]
    assert (parts[0].name, parts[0].provenance) == (parts[1].name, parts[1].provenance)
    assert parts[0].provenance["kind"] == "url"
    assert parts[0].provenance["fetched"] == [
        {"name": "a.en.gz", "sha256": files[0].digest},
        {"name": "a.de", "sha256": files[1].digest},
    ]


@pytest.mark.parametrize("place", ["own", "network"])
def test_unpacked_archive_is_not_fetched_again(site: Site, tmp_path: Path, place: str) -> None:
    """The folder exists only when complete, so users may delete the archive to save space."""
    files = [offer(site, "a.tar", make_archive("a.tar", {"a.tsv": b"one\teins\n"}))]
    (tmp_path / place).mkdir()
    (tmp_path / place / "a.tar").write_bytes(site.files["a.tar"])
    for _ in range(2):
        part = remote_part(files, ["a.tsv"], (0, 1), tmp_path / "own", tmp_path / "downloads")
        assert list(part.pairs) == [("one", "eins")]
        (tmp_path / "downloads" / f"{files[0].digest}.a.tar").unlink(missing_ok=True)
    assert len(site.asked) == (place == "network")


def test_a_name_in_no_or_two_archives_is_an_error(site: Site, tmp_path: Path) -> None:
    """The most similar names come first: paths in archives are long and hard to guess."""
    members = {"corpus/train.en": b"", "README": b""}
    files = [offer(site, f"{n}.tar", make_archive(f"{n}.tar", members | {n: b""})) for n in ("one", "two")]
    for name, message in (
        ("train.en", r"'train\.en' is not among.*: corpus/train\.en"),
        ("README", "'README' is in 2 of the fetched files"),
    ):
        with pytest.raises((FileNotFoundError, ValueError), match=message):
            remote_part(files, [name], (0, 1), tmp_path / "own", tmp_path / "downloads")
