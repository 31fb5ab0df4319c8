"""Files and archives from the network: mirrors, verification, unpacking, and what is kept between runs."""

import errno
import gzip
import hashlib
import io
import random
import re
import stat
import tarfile
import zipfile
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import pooch
import pytest
from filelock import FileLock

from convs2s.config.download import RemoteFile, UrlSource
from convs2s.text.sources.pair_files import Part
from convs2s.text.sources.remote import RETRIES, provide, remote_part, unpack
from tests.web import TAR_MODES, Site, make_archive

CONTENT = b"0123456789" * 500
SHA256 = hashlib.sha256(CONTENT).hexdigest()
MD5 = hashlib.md5(CONTENT).hexdigest()
OTHER = b"another file"
SUFFIXES = [*TAR_MODES, ".zip"]


def get(site: Site, folder: Path, *names: str, checksum: str | None = SHA256) -> bytes:
    """Fetch a file from the given mirrors into a folder; return its content."""
    file = RemoteFile(urls=[site.url(name) for name in names], checksum=checksum)
    ((name, path),) = provide(file, folder / "own", folder / "downloads").items()
    assert name == "a.txt"
    return path.read_bytes()


def downloads(folder: Path) -> list[str]:
    """Return the names of the files that are kept."""
    return [path.name for path in (folder / "downloads").iterdir() if path.name != "lock"]


@pytest.mark.parametrize("checksum", [SHA256, MD5])
def test_mirrors_are_tried_in_turn_until_one_has_the_right_file(
    site: Site, tmp_path: Path, checksum: str
) -> None:
    """One dead link, or another file under the same name, does not stop the stage; it is fetched once."""
    site.files |= {"bad/a.txt": OTHER, "good/a.txt": CONTENT}
    for _ in range(2):
        names = ("gone/a.txt", "bad/a.txt", "good/a.txt")
        assert get(site, tmp_path, *names, checksum=checksum) == CONTENT
    attempts = 1 + RETRIES
    assert site.asked == [*["gone/a.txt"] * attempts, *["bad/a.txt"] * attempts, "good/a.txt"]


def test_no_mirror_gives_each_reason_and_leaves_nothing(site: Site, tmp_path: Path) -> None:
    """The user must see why each mirror failed; a later run must not take a wrong file for the right one."""
    site.files["bad/a.txt"] = OTHER
    with pytest.raises(ConnectionError) as caught:
        get(site, tmp_path, "one/a.txt", "bad/a.txt")
    message = str(caught.value)
    digest = hashlib.sha256(OTHER).hexdigest()
    assert re.search(
        rf"^a.txt could not .*:\n.*one/a\.txt: 404.*\n.*bad/a\.txt: .*{SHA256}.*{digest}", message
    )
    assert "Check the network, and the urls and the checksum in params.yaml" in message
    assert message.endswith("own/a.txt may hold it instead.")
    assert not downloads(tmp_path)


@pytest.mark.parametrize("checksum", [SHA256, None])
def test_a_transfer_that_always_breaks_is_an_error(site: Site, tmp_path: Path, checksum: str | None) -> None:
    """Half a file must not pass for the whole, checksum or not; a few attempts are enough."""
    site.files["a.txt"] = CONTENT
    site.breaks = [400] * (1 + RETRIES)
    with pytest.raises(ConnectionError, match=r"IncompleteRead\(400 bytes read, 4600 more expected\)"):
        get(site, tmp_path, "a.txt", checksum=checksum)
    assert not downloads(tmp_path)


@pytest.mark.parametrize("checksum", [SHA256, None])
def test_a_broken_or_refused_transfer_is_repeated(site: Site, tmp_path: Path, checksum: str | None) -> None:
    """Networks fail for a moment, and a busy server may recover."""
    site.files["a.txt"] = CONTENT
    site.breaks = [2000]
    site.statuses = [503, 429]
    assert get(site, tmp_path, "a.txt", checksum=checksum) == CONTENT


def test_a_file_in_the_users_folder_is_used(site: Site, tmp_path: Path) -> None:
    """A machine without network works from there."""
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "a.txt").write_bytes(CONTENT)
    assert get(site, tmp_path, "gone/a.txt") == CONTENT
    assert not site.asked


def test_another_file_in_the_users_folder_is_not_used(
    site: Site, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The log says so, or the user would take it for the file that was read."""
    own = tmp_path / "own" / "a.txt"
    own.parent.mkdir()
    own.write_bytes(OTHER)
    site.files["a.txt"] = CONTENT
    assert get(site, tmp_path, "a.txt") == CONTENT
    found = hashlib.sha256(OTHER).hexdigest()
    assert f"{own} is not used: expected checksum {SHA256}, found {found}" in caplog.text
    assert own.read_bytes() == OTHER


def test_a_downloaded_file_is_used_again_if_it_is_right(site: Site, tmp_path: Path) -> None:
    """DVC tracks no downloads, so each run checks them anew."""
    site.files["a.txt"] = CONTENT
    for _ in range(2):
        assert get(site, tmp_path, "a.txt") == CONTENT
    assert len(site.asked) == 1
    next((tmp_path / "downloads").glob("*.a.txt")).write_bytes(CONTENT[:100])
    assert get(site, tmp_path, "a.txt") == CONTENT
    assert len(site.asked) == 2


LOGGED_HASH = f"a.txt is not verified; its sha256 is {SHA256}. To have it verified"


def test_without_a_checksum_any_file_of_the_user_is_accepted_and_its_hash_logged(
    site: Site, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The user can then put the hash into params.yaml."""
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "a.txt").write_bytes(CONTENT)
    for _ in range(2):
        assert get(site, tmp_path, "a.txt", checksum=None) == CONTENT
    assert not site.asked
    assert LOGGED_HASH in caplog.text


def test_without_a_checksum_any_download_is_accepted_and_its_hash_logged(
    site: Site, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It is fetched once, and redirects are followed, as many archives have moved."""
    site.files["b.txt"] = CONTENT
    site.redirects["a.txt"] = "/b.txt"
    for _ in range(2):
        assert get(site, tmp_path, "a.txt", checksum=None) == CONTENT
    assert site.asked == ["a.txt", "b.txt"]
    assert LOGGED_HASH in caplog.text


def test_two_stages_fetch_a_file_once(site: Site, tmp_path: Path) -> None:
    """Two splits may need the same archive at once; the second stage waits, and then finds it."""
    site.files["a.txt"] = CONTENT
    (tmp_path / "downloads").mkdir()
    with ThreadPoolExecutor(2) as pool:
        with FileLock(tmp_path / "downloads" / "lock"):  # both find it held
            both = [pool.submit(get, site, tmp_path, "a.txt") for _ in range(2)]
            wait(both, timeout=0.2)
            assert not site.asked
        assert [future.result() for future in both] == [CONTENT, CONTENT]
    assert len(site.asked) == 1


def fill(*_: Any, **__: Any) -> None:
    """Fail as a write to a full disk does."""
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_stops_a_download_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other mirrors cannot help, so none is asked; the error names the file."""
    monkeypatch.setattr(pooch.HTTPDownloader, "__call__", fill)
    with pytest.raises(OSError, match=r"No space left on device.*\.a\.txt"):
        get(Site(), tmp_path, "a.txt", "b/a.txt")
    assert not downloads(tmp_path)


def test_a_full_disk_is_no_fault_of_the_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the message blamed the archive, users would download it again, which would not help."""
    (tmp_path / "a.tar").write_bytes(make_archive("a.tar", {"text": b"x"}))
    monkeypatch.setattr("tarfile.ExFileObject.read", fill)
    with pytest.raises(OSError, match=r"No space left on device.*out'"):
        unpack(tmp_path / "a.tar", tmp_path / "out")


def test_no_message_has_a_password_or_token(
    site: Site, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Users share logs and errors; requests quotes whole URLs, also those of redirects."""
    site.redirects["b.txt"] = "ftp://me:hunter2@host/b?token=hunter2"
    for url in (site.url("a.txt?token=hunter2"), site.url("b.txt"), "http://host:port/a?token=hunter2"):
        with pytest.raises(ConnectionError) as failed:
            provide(RemoteFile(urls=[url], checksum=None), tmp_path, tmp_path)
        assert "hunter2" not in str(failed.value) + caplog.text
    assert f"{site.url('a.txt')}?..." in caplog.text


def test_a_server_does_not_control_the_terminal(
    site: Site, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """requests quotes the reason that a server gives for its refusal."""
    site.reason = "No\x1b[2J"
    with pytest.raises(ConnectionError) as failed:
        get(site, tmp_path, "a.txt")
    assert "\x1b" not in str(failed.value) + caplog.text
    assert "No\ufffd[2J" in caplog.text


@pytest.mark.parametrize("scheme", ["file", "ftp", "data"])
def test_a_redirect_leads_only_to_the_web(site: Site, tmp_path: Path, scheme: str) -> None:
    """A server must not choose a file of this machine as the corpus."""
    (tmp_path / "secret").write_bytes(CONTENT)
    site.redirects["a.txt"] = f"{scheme}://{tmp_path}/secret"
    with pytest.raises(ConnectionError, match=f"No connection adapters were found for .{scheme}:"):
        get(site, tmp_path, "a.txt", checksum=None)
    assert not downloads(tmp_path)


def open_corpus(site: Site, folder: Path, files: dict[str, bytes], **pairs: Any) -> Part:
    """Open a corpus in these files of the server."""
    site.files |= files
    fetch = [
        {"urls": [site.url(name)], "checksum": hashlib.sha256(files[name]).hexdigest()} for name in files
    ]
    source = UrlSource.model_validate({"kind": "url", "fetch": fetch, **pairs})
    return remote_part(source, ("en", "de"), folder, folder.parent / "downloads")


def test_provenance_is_the_same_from_network_and_folder(site: Site, tmp_path: Path) -> None:
    """Otherwise DVC would take the same data for new data, and rerun all later stages."""
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "a.de").write_bytes(b"eins\n")
    files = {"x/a.en.gz": gzip.compress(b"one\n"), "y/a.de": b"eins\n"}
    parts = [
        open_corpus(site, tmp_path / folder, files, source="a.en.gz", target="a.de")
        for folder in ("none", "own")
    ]
    assert [list(part.pairs) for part in parts] == [[("one", "eins")]] * 2
    assert site.asked == ["x/a.en.gz", "y/a.de"]
    assert (parts[0].name, parts[0].provenance) == (parts[1].name, parts[1].provenance)
    assert [file["name"] for file in parts[0].provenance["files"]] == ["a.en.gz", "a.de"]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_corpus_in_an_archive_is_read(site: Site, tmp_path: Path, suffix: str) -> None:
    """Corpora come in any compression. A new version of the archive is unpacked anew."""
    for content in (b"one\teins\n", b"two\tzwei\n"):
        archive = make_archive(suffix, {"deep/er/a.tsv": content, "README": b""})
        part = open_corpus(site, tmp_path, {f"a{suffix}": archive}, tsv="deep/er/a.tsv", columns=[0, 1])
        assert ["\t".join(pair) + "\n" for pair in part.pairs] == [content.decode()]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("train.en", r"'train\.en' is the name of 0 fetched files.*: corpus/train\.en"),
        ("README", "'README' is the name of 2 fetched files"),
    ],
)
def test_a_name_in_no_or_two_archives_is_an_error(
    site: Site, tmp_path: Path, name: str, message: str
) -> None:
    """The most similar names come first: paths in archives are long and hard to guess."""
    members = {"corpus/train.en": b"", "README": b""}
    files = {f"{n}.tar": make_archive(f"{n}.tar", members | {n: b""}) for n in ("one", "two")}
    with pytest.raises(FileNotFoundError, match=message):
        open_corpus(site, tmp_path, files, tsv=name, columns=[0, 1])


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_damaged_archive_is_an_error_and_leaves_nothing(tmp_path: Path, suffix: str) -> None:
    """A partly unpacked corpus must not pass for a complete one; each compression fails in its own way."""
    members = {"a": b"".join(b"sentence %d\n" % (i * i * 7919) for i in range(2000))}
    path = tmp_path / f"a{suffix}"
    path.write_bytes(make_archive(path.name, members)[:3000])
    with pytest.raises(ValueError, match=rf"a{suffix} is damaged or unsafe"):
        unpack(path, tmp_path / "out")
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def tar_of(*members: tarfile.TarInfo, content: bytes = b"", mode: Any = "w") -> bytes:
    """Return a tar of a file "good" with this content, and of others without any of their own."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode=mode) as tar:
        good = tarfile.TarInfo("good")
        good.size = len(content)
        tar.addfile(good, io.BytesIO(content))
        for member in members:
            tar.addfile(member, io.BytesIO(b"\0" * member.size))
    return stream.getvalue()


def entry(name: str, kind: bytes, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type = kind
    info.linkname = target
    return info


def zip_with_link() -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as file:
        link = zipfile.ZipInfo("link")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        file.writestr(link, "good")
    return stream.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.tar", tar_of(entry("../evil", tarfile.REGTYPE)), r"'\.\./evil' leads outside"),
        ("a.tar", tar_of(entry("x/../../evil", tarfile.REGTYPE)), "leads outside"),
        ("a.tar", tar_of(entry(".", tarfile.REGTYPE)), r"'\.' would be a file and a folder"),
        ("a.zip", make_archive("a.zip", {"x": b"x", "x/y": b"x"}), "'x/y' would be a file and a folder"),
        ("a.zip", make_archive("a.zip", {"x/y": b"x", "x": b"x"}), "'x' would be a file and a folder"),
        ("a.tar", tar_of(entry("a", tarfile.SYMTYPE, "../../a.tar")), "linkname '../../a.tar' not found"),
        ("a.tar", tar_of(entry("a", tarfile.SYMTYPE, "/etc/passwd")), "linkname '/etc/passwd' not found"),
        ("a.tar", tar_of(entry("a", tarfile.LNKTYPE, "../a.tar")), "linkname '../a.tar' not found"),
        ("a.tar", tar_of(*(entry(a, tarfile.SYMTYPE, b) for a, b in ("ab", "ba"))), "recursion|not found"),
        ("a.tar", tar_of(entry("null", tarfile.CHRTYPE)), "'null' is a device"),
        ("a.tar", tar_of(entry("pipe", tarfile.FIFOTYPE)), "'pipe' is a device"),
        ("a.zip", make_archive("a.zip", {"good": b"x", "../evil": b"x"}), r"'\.\./evil' leads outside"),
        ("a.zip", zip_with_link(), "'link' is a link"),
    ],
)  # fmt: skip
def test_an_unsafe_archive_is_refused_and_leaves_nothing(
    name: str, content: bytes, message: str, tmp_path: Path
) -> None:
    """It could read or overwrite any file of the user; members left out would be missing without a word."""
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=rf"{name} is damaged or unsafe: .*{message}"):
        unpack(tmp_path / name, tmp_path / "in" / "out")
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == [name]
    assert not list((tmp_path / "in").iterdir())


def test_links_within_an_archive_are_copies(tmp_path: Path) -> None:
    """Not every disk can hold a link, and none must lead out of the folder."""
    soft = entry("corpus/soft", tarfile.SYMTYPE, "../good")
    hard = entry("hard", tarfile.LNKTYPE, "good")
    (tmp_path / "a.tar").write_bytes(tar_of(soft, hard, content=b"x"))
    unpack(tmp_path / "a.tar", tmp_path / "out")
    for name in ("good", "corpus/soft", "hard"):
        assert (tmp_path / "out" / name).read_bytes() == b"x"
        assert not (tmp_path / "out" / name).is_symlink()


def test_absolute_names_in_an_archive_are_relative_to_the_folder(tmp_path: Path) -> None:
    """tar reads them in the same way."""
    (tmp_path / "a.tar").write_bytes(tar_of(entry("/abs", tarfile.REGTYPE)))
    unpack(tmp_path / "a.tar", tmp_path / "out")
    assert (tmp_path / "out" / "abs").read_bytes() == b""


def sparse() -> bytes:
    """Return a tar of kilobytes with a file of 9 MB, of which it holds nothing."""
    info = tarfile.TarInfo("a")
    info.size = 512
    sparse_file = {"major": "1", "minor": "0", "name": "a", "realsize": "9000000"}
    info.pax_headers = {f"GNU.sparse.{key}": value for key, value in sparse_file.items()}
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as tar:
        tar.addfile(info, io.BytesIO(b"1\n9000000\n0\n".ljust(512, b"\0")))
    return stream.getvalue()


LINKS = [entry(str(number), tarfile.LNKTYPE, "good") for number in range(90)]
ZEROS = b"\0" * 9_000_000


GROWING = pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.tar", sparse()),
        ("a.tar.gz", tar_of(*LINKS, content=bytes(100_000), mode="w:gz")),
        ("a.tar.xz", tar_of(content=ZEROS, mode="w:xz")),
        ("a.zip", make_archive("a.zip", {"a": ZEROS})),
        ("a.zip", make_archive("a.zip", {str(number): bytes(90_000) for number in range(100)})),
    ],
)


@GROWING
def test_an_archive_may_grow_up_to_a_gigabyte(name: str, content: bytes, tmp_path: Path) -> None:
    """That much fills no disk, so it is not worth a refusal."""
    (tmp_path / name).write_bytes(content)
    unpack(tmp_path / name, tmp_path / "out")
    assert sum(path.stat().st_size for path in (tmp_path / "out").rglob("*")) >= 9_000_000


@GROWING
def test_an_archive_that_grows_without_end_is_refused(
    name: str, content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Holes, links and zeros would fill the disk; 9 MB stand for gigabytes here."""
    (tmp_path / name).write_bytes(content)
    monkeypatch.setattr("convs2s.text.sources.remote.ALWAYS_ALLOWED", 1_000_000)
    monkeypatch.setattr("convs2s.text.sources.remote.GROWTH", 20)
    with pytest.raises(
        ValueError, match=rf"{name} is damaged or unsafe: its files have more than [\d,]+ byt"
    ):
        unpack(tmp_path / name, tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_an_archive_may_have_large_files_if_it_is_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit grows with the archive: text, however repetitive, does not meet it."""
    monkeypatch.setattr("convs2s.text.sources.remote.ALWAYS_ALLOWED", 1_000)
    text = b"".join(b"The same sentence, but for its number: %d.\n" % number for number in range(50_000))
    (tmp_path / "a.tar.xz").write_bytes(make_archive("a.tar.xz", {"a": text}))
    unpack(tmp_path / "a.tar.xz", tmp_path / "out")
    assert (tmp_path / "out" / "a").read_bytes() == text


def tar_of_files(count: int, name: str = "{}", kind: bytes = tarfile.REGTYPE) -> bytes:
    return tar_of(*(entry(name.format(number), kind, "good") for number in range(count)), mode="w:xz")


MANY = pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.tar.xz", tar_of_files(2000)),
        ("a.tar.xz", tar_of_files(2000, kind=tarfile.DIRTYPE)),
        ("a.tar.xz", tar_of_files(2000, kind=tarfile.LNKTYPE)),
        ("a.tar.xz", tar_of_files(2000, "same")),
        ("a.tar.xz", tar_of_files(40, f"{{}}/{'d/' * 60}f")),
        ("a.zip", make_archive("a.zip", {f"{number}": b"" for number in range(2000)})),
        ("a.zip", make_archive("a.zip", {f"{number}/": b"" for number in range(2000)})),
        ("a.zip", make_archive("a.zip", {f"{number}/{'d/' * 60}f": b"" for number in range(40)})),
    ],
)


@MANY
def test_an_archive_of_many_empty_files_is_refused(
    name: str, content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They have no bytes, but each takes a disk's block and one of its inodes; 2,000 stand for more here."""
    (tmp_path / name).write_bytes(content)
    monkeypatch.setattr("convs2s.text.sources.remote.ALWAYS_ALLOWED_FILES", 1000)
    monkeypatch.setattr("convs2s.text.sources.remote.GROWTH", 1)
    with pytest.raises(
        ValueError, match=rf"{name} is damaged or unsafe: it has more than 1,000 files and folders, too many"
    ):
        unpack(tmp_path / name, tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == [name]


@MANY
def test_an_archive_may_have_thousands_of_files(name: str, content: bytes, tmp_path: Path) -> None:
    """Some corpora have a file for each text."""
    (tmp_path / name).write_bytes(content)
    unpack(tmp_path / name, tmp_path / "out")


def test_many_files_need_an_archive_of_some_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each counts as a block of a disk, 4 KiB: the limit grows with the archive, as that of bytes does."""
    monkeypatch.setattr("convs2s.text.sources.remote.ALWAYS_ALLOWED_FILES", 10)
    members = {f"{number}": random.Random(number).randbytes(40) for number in range(500)}
    (tmp_path / "a.tar.xz").write_bytes(make_archive("a.tar.xz", members))
    unpack(tmp_path / "a.tar.xz", tmp_path / "out")
    assert len(list((tmp_path / "out").iterdir())) == 500


@pytest.mark.parametrize("suffix", [".tar.xz", ".zip"])
def test_an_archive_of_deep_folders_is_refused_and_leaves_nothing(tmp_path: Path, suffix: str) -> None:
    """Python can neither list nor delete a thousand folders within each other: a RecursionError."""
    members = {f"{'d/' * depth}f": b"" for depth in (50, 400, 800, 1200)}
    path = tmp_path / f"a{suffix}"
    path.write_bytes(make_archive(path.name, members))
    with pytest.raises(ValueError, match="is in more than 100 folders within each other"):
        unpack(path, tmp_path / "out")
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME])
def test_a_tar_with_a_huge_header_is_refused(tmp_path: Path, kind: bytes) -> None:
    """tarfile reads it into memory: zeros of many gigabytes fit into a few megabytes of archive."""
    header = entry("x", kind)
    header.size = 2_000_000
    (tmp_path / "a.tar.xz").write_bytes(tar_of(header, entry("y", tarfile.REGTYPE), mode="w:xz"))
    with pytest.raises(ValueError, match="it has a header of 2,000,000 bytes"):
        unpack(tmp_path / "a.tar.xz", tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["a.tar.xz"]
