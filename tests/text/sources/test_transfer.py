"""One file from one server: broken connections, range requests and transient errors."""

import errno
import os
import socket
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any

import pytest

from convs2s.text.sources import transfer
from convs2s.text.sources.fetch import fetch
from convs2s.text.sources.transfer import TransferRefused, file_name, persist
from tests.text.sources.conftest import Site

CONTENT = b"0123456789" * 500


def test_break_in_the_middle_is_resumed(site: Site, tmp_path: Path) -> None:
    """After a break, only the missing bytes are requested."""
    site.files["a.txt"], site.breaks = CONTENT, [2000, 1000]
    persist(site.url("a.txt"), tmp_path / "part", verified=True)
    assert (tmp_path / "part").read_bytes() == CONTENT
    assert site.asked == [("/a.txt", None), ("/a.txt", "bytes=2000-"), ("/a.txt", "bytes=3000-")]


def test_server_without_ranges_starts_over(site: Site, tmp_path: Path) -> None:
    """It answers a range request with the whole file, which must not be appended to the first part."""
    site.files["a.txt"], site.breaks, site.ranges = CONTENT, [2000], False
    persist(site.url("a.txt"), tmp_path / "part", verified=True)
    assert (tmp_path / "part").read_bytes() == CONTENT


def test_progress_resets_the_attempts(site: Site, tmp_path: Path) -> None:
    """A connection that delivers a little each time succeeds, even after more breaks than ATTEMPTS."""
    site.files["a.txt"], site.breaks = CONTENT, [400] * 12
    persist(site.url("a.txt"), tmp_path / "part", verified=True)
    assert (tmp_path / "part").read_bytes() == CONTENT
    assert len(site.asked) == 13


def test_repeated_breaks_at_the_same_byte_are_an_error(site: Site, tmp_path: Path) -> None:
    """Without ranges the same bytes come again, which is no progress: 1 attempt, then ATTEMPTS more."""
    site.files["a.txt"], site.breaks, site.ranges = CONTENT, [400] * 100, False
    with pytest.raises(TransferRefused, match="connection ended after 400 of 5,000 bytes, 5 times in a row"):
        persist(site.url("a.txt"), tmp_path / "part", verified=True)
    assert len(site.asked) == 1 + transfer.ATTEMPTS


def test_busy_server_is_asked_again(site: Site, tmp_path: Path) -> None:
    """Statuses 503 and 429 are temporary."""
    site.files["a.txt"], site.statuses = CONTENT, [503, 429]
    persist(site.url("a.txt"), tmp_path / "part", verified=True)
    assert (tmp_path / "part").read_bytes() == CONTENT


def test_missing_file_is_not_asked_for_again(site: Site, tmp_path: Path) -> None:
    """Status 404 is permanent, so the next mirror is tried at once."""
    with pytest.raises(TransferRefused, match="HTTP 404 Not Found"):
        persist(site.url("a.txt"), tmp_path / "part", verified=True)
    assert len(site.asked) == 1


def test_pauses_double(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An overloaded server gets more time after each failure."""
    pauses: list[float] = []
    monkeypatch.setattr(transfer, "PAUSE", 1.0)
    monkeypatch.setattr("time.sleep", pauses.append)
    site.statuses = [500] * 100
    with pytest.raises(TransferRefused, match="HTTP 500 Internal Server Error, 5 times in a row"):
        persist(site.url("a.txt"), tmp_path / "part", verified=True)
    assert pauses == [1.0, 2.0, 4.0, 8.0]


def test_unreachable_server_is_an_error(tmp_path: Path) -> None:
    """The server may be restarting, so the error comes only after several attempts."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(TransferRefused, match=r"Connection refused.*, 5 times in a row"):
        persist(f"http://127.0.0.1:{port}/a.txt", tmp_path / "part", verified=True)


def test_file_url_is_copied(tmp_path: Path) -> None:
    """A mounted folder can be a mirror; it has no ranges, so an old part is overwritten."""
    (tmp_path / "a.txt").write_bytes(CONTENT)
    (tmp_path / "part").write_bytes(b"xx")
    persist((tmp_path / "a.txt").as_uri(), tmp_path / "part", verified=True)
    assert (tmp_path / "part").read_bytes() == CONTENT


def test_missing_file_url_is_refused(tmp_path: Path) -> None:
    """Retrying would not create the file."""
    with pytest.raises(TransferRefused, match=r"no such file: .*gone\.txt"):
        persist((tmp_path / "gone.txt").as_uri(), tmp_path / "part", verified=True)


class FullDisk:
    """A file that accepts only its first 1,000 bytes."""

    def __init__(self, stream: IO[bytes]) -> None:
        self.stream = stream

    def write(self, chunk: bytes) -> int:
        self.stream.write(chunk[:1000])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_full_disk_stops_at_once_and_is_resumed_later(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other mirrors cannot help; once there is space, only the rest is fetched."""
    site.files["a.txt"], part = CONTENT, tmp_path / "part"
    write = transfer.write

    def write_to_full_disk(stream: Any, chunk: bytes, path: Path) -> None:
        write(FullDisk(stream), chunk, path)

    monkeypatch.setattr(transfer, "write", write_to_full_disk)
    with pytest.raises(OSError, match=r"No space left on device.*free up space and run this again") as caught:
        persist(site.url("a.txt"), part, verified=True)
    assert caught.value.errno == errno.ENOSPC
    assert caught.value.filename == str(part)
    monkeypatch.setattr(transfer, "write", write)
    persist(site.url("a.txt"), part, verified=True)
    assert part.read_bytes() == CONTENT
    assert site.asked == [("/a.txt", None), ("/a.txt", "bytes=1000-")]


def test_chunk_is_written_to_its_end(tmp_path: Path) -> None:
    """A write may accept only some of its bytes, for instance if a signal arrives."""
    taken: list[bytes] = []

    def take_three(rest: memoryview) -> int:
        taken.append(bytes(rest[:3]))
        return len(taken[-1])

    transfer.write(SimpleNamespace(write=take_three), b"12345678", tmp_path)
    assert taken == [b"123", b"456", b"78"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_full_disk_is_reported_by_name(site: Site, tmp_path: Path) -> None:
    """When the file is closed, a second and less helpful error must not replace the first."""
    site.files["a.txt"], part = b"less than a buffer", tmp_path / "part"
    part.symlink_to("/dev/full")
    with pytest.raises(OSError, match=r"No space left on device\. The partial download is kept") as caught:
        persist(site.url("a.txt"), part, verified=True)
    assert caught.value.filename == str(part)


def test_file_name_is_the_last_component_of_the_path() -> None:
    """The query is not part of the name, and an escaped slash must not smuggle in a folder."""
    assert file_name("https://host/a/train.en.gz?download=1") == "train.en.gz"
    assert file_name("https://host/a%20b.txt") == "a b.txt"
    assert file_name("https://host/x%2F..%2Fpasswd") == "passwd"


@pytest.mark.parametrize("url", ["https://host/", "https://host", "https://host/.."])
def test_url_without_file_name_is_an_error(url: str) -> None:
    """The name decides how the file is read, and cannot be guessed."""
    with pytest.raises(ValueError, match="has no file name at its end"):
        file_name(url)


@pytest.mark.fault("security")
@pytest.mark.parametrize(
    "target", ["ftp://host/a.txt", "file:///etc/passwd", "data:,hello", "gopher://host/a"]
)
def test_a_redirect_leads_to_the_web_only(site: Site, tmp_path: Path, target: str) -> None:
    """Otherwise a server could choose another protocol, or a file of this machine."""
    site.redirects["a.txt"] = target
    with pytest.raises(TransferRefused, match=r"the server redirects to .*; wanted http:// or https://"):
        persist(site.url("a.txt"), tmp_path / "part", verified=True)
    assert not (tmp_path / "part").exists()


def test_a_redirect_within_the_web_is_followed(site: Site, tmp_path: Path) -> None:
    """Mirrors and storage services use such redirects."""
    site.files["b.txt"], site.redirects["a.txt"] = CONTENT, "/b.txt"
    persist(site.url("a.txt"), tmp_path / "part", verified=False)
    assert (tmp_path / "part").read_bytes() == CONTENT


@pytest.mark.fault("security")
def test_a_file_of_unknown_length_is_refused(site: Site, tmp_path: Path) -> None:
    """Without length, digest or an end in the format, the first half would pass for the whole file."""
    site.files |= {"a.txt": CONTENT, "a.txt.gz": CONTENT}
    site.lengths, site.breaks = False, [2000, 2000]
    with pytest.raises(TransferRefused, match=r"does not say how long the file is.*Wanted its sha256"):
        persist(site.url("a.txt"), tmp_path / "part", verified=False)
    persist(site.url("a.txt"), tmp_path / "part", verified=True)  # the digest will show it
    persist(site.url("a.txt.gz"), tmp_path / "other", verified=False)  # gzip's checksum will be missing
    assert not site.breaks


@pytest.mark.fault("security")
def test_the_rest_of_a_file_must_begin_at_the_requested_byte(site: Site, tmp_path: Path) -> None:
    """Otherwise bytes would be missing in the middle."""
    site.files["a.txt"], site.breaks, site.ranges_from = CONTENT, [2000], 10
    with pytest.raises(
        TransferRefused, match=r"asked for bytes 2000-, the server sent 'bytes 2010-4999/5000'"
    ):
        persist(site.url("a.txt"), tmp_path / "part", verified=False)


@pytest.mark.fault("security")
def test_no_message_has_a_password_or_token(
    site: Site, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Users share logs and errors; for an invalid port, urllib itself would quote the password."""
    secret = "hunter2"
    with pytest.raises(ValueError, match="has a user name or password") as refused:
        fetch([f"https://me:{secret}@host/a.txt"], None, tmp_path, tmp_path)
    assert secret not in str(refused.value)
    site.redirects["b.txt"] = f"ftp://me:{secret}@host/b?token={secret}"
    for name in ("a.txt", "b.txt", "a b.txt", "c.txt"):
        site.statuses = [503, 404]
        with pytest.raises(ConnectionError) as failed:
            fetch([site.url(f"{name}?token={secret}")], None, tmp_path, tmp_path)
        assert secret not in str(failed.value)
    assert secret not in caplog.text
    assert f"{site.url('a.txt')}?..." in caplog.text


@pytest.mark.parametrize("url", ["http://[/a.txt", "http://host:port/a.txt"])
def test_an_invalid_url_is_reported(tmp_path: Path, url: str) -> None:
    """URLs in params.yaml are written by hand."""
    with pytest.raises((ValueError, ConnectionError), match=r"cannot be read: Invalid|has a wrong port"):
        fetch([url], None, tmp_path, tmp_path)


@pytest.mark.parametrize("url", ["ftp://host/a.txt", "data:,hello", "train.en.gz"])
def test_other_schemes_are_an_error(url: str) -> None:
    """A path instead of a URL is a likely mistake."""
    with pytest.raises(ValueError, match="wanted one that starts with http://"):
        file_name(url)
