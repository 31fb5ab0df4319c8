"""Which archives are unpacked, and which are refused."""

import errno
import io
import os
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

from convs2s.text.sources import unpack as unpack_module
from convs2s.text.sources.unpack import is_archive, unpack

TAR_MODES = {".tar": "w", ".tgz": "w:gz", ".tar.gz": "w:gz", ".tar.bz2": "w:bz2", ".tar.xz": "w:xz"}
FILES = {"train.en": b"one\n" * 500, "deep/er/train.de": b"eins\n" * 500}


def make_tar(path: Path, files: dict[str, bytes], *special: tarfile.TarInfo) -> Path:
    """Write a tar archive of files, and of members without content."""
    mode: Any = TAR_MODES["".join(path.suffixes)]
    with tarfile.open(path, mode) as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
        for member in special:
            tar.addfile(member)
    return path


def make_zip(path: Path, files: dict[str, bytes]) -> Path:
    """Write a zip archive of files."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in files.items():
            file.writestr(name, content)
    return path


def special(name: str, kind: bytes, target: str = "") -> tarfile.TarInfo:
    """Return a tar member that is not a regular file."""
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, target
    return member


def content_of(folder: Path) -> dict[str, bytes]:
    """Return the content of a folder."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


@pytest.mark.parametrize("suffix", TAR_MODES)
def test_tar_is_unpacked(tmp_path: Path, suffix: str) -> None:
    """Every compression of tar works; folders need not have members of their own."""
    archive = make_tar(tmp_path / f"a{suffix}", FILES, special("empty", tarfile.DIRTYPE))
    unpack(archive, tmp_path / "out")
    assert content_of(tmp_path / "out") == FILES


def test_zip_is_unpacked(tmp_path: Path) -> None:
    """A zip archive gives the same files as a tar archive."""
    unpack(make_zip(tmp_path / "a.zip", {**FILES, "folder/": b""}), tmp_path / "out")
    assert content_of(tmp_path / "out") == FILES


@pytest.mark.parametrize("make", [make_tar, make_zip])
def test_no_member_lands_outside_the_folder(tmp_path: Path, make: Any) -> None:
    """Otherwise an archive could overwrite any file of the user; tar refuses, zip strips the name."""
    archive = make(tmp_path / ("a.tar" if make is make_tar else "a.zip"), {"good": b"x", "../evil": b"x"})
    if make is make_tar:
        with pytest.raises(ValueError, match=r"'evil' would be extracted to|outside the destination"):
            unpack(archive, tmp_path / "out")
    else:
        unpack(archive, tmp_path / "out")
    assert {path.name for path in tmp_path.iterdir()} <= {archive.name, "out"}


@pytest.mark.parametrize(
    "kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE]
)
def test_tar_member_that_is_not_a_file_is_refused(tmp_path: Path, kind: bytes) -> None:
    """A link may point outside, also for later members; reading a device or pipe can hang or do harm."""
    archive = make_tar(tmp_path / "a.tar", {"good": b"x"}, special("bad", kind, target="good"))
    with pytest.raises(ValueError, match="member 'bad' is a link, a device or another special file"):
        unpack(archive, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_encrypted_zip_is_refused(tmp_path: Path) -> None:
    """The stage cannot ask for a password."""
    archive = make_zip(tmp_path / "a.zip", {"a": b"x"})
    content = bytearray(archive.read_bytes())
    content[content.index(b"PK\x01\x02") + 8] |= 1  # the encryption flag in the table of contents
    archive.write_bytes(content)
    with pytest.raises(ValueError, match="is encrypted"):
        unpack(archive, tmp_path / "out")


@pytest.mark.parametrize("suffix", [".tar.gz", ".tar.xz", ".zip"])
@pytest.mark.parametrize("count", [1, 9])
def test_an_archive_that_fills_the_disk_is_refused(
    tmp_path: Path, suffix: str, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It grows a thousandfold, in one member or over many; for small contents such growth is harmless."""
    archive = tmp_path / f"bomb{suffix}"
    make = make_zip if suffix == ".zip" else make_tar
    make(archive, {f"zeros{n}": bytes(10_000_000 // count) for n in range(count)})
    unpack(archive, tmp_path / "out")
    monkeypatch.setattr(unpack_module, "HARMLESS", 9_000_000)
    with pytest.raises(ValueError, match="more than 200 times as large as the archive"):
        unpack(archive, tmp_path / "refused")
    assert {path.name for path in tmp_path.iterdir()} == {"out", archive.name}


def test_a_sparse_member_has_its_whole_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kilobyte of tar may stand for any number of zeros."""
    member = tarfile.TarInfo("sparse")
    member.pax_headers = {"GNU.sparse.major": "0", "GNU.sparse.minor": "1"}
    member.pax_headers |= {"GNU.sparse.size": str(1 << 40), "GNU.sparse.map": "0,0"}
    with tarfile.open(tmp_path / "sparse.tar", "w", format=tarfile.PAX_FORMAT) as tar:
        tar.addfile(member)
    monkeypatch.setattr(unpack_module, "HARMLESS", 10_000_000)
    with pytest.raises(ValueError, match="more than 200 times as large as the archive"):
        unpack(tmp_path / "sparse.tar", tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["sparse.tar"]


@pytest.mark.parametrize("suffix", [*TAR_MODES, ".zip"])
@pytest.mark.parametrize("damage", ["cut", "other"])
def test_damaged_archive_is_an_error_and_leaves_nothing(tmp_path: Path, suffix: str, damage: str) -> None:
    """A partly unpacked corpus must not pass for a complete one."""
    path = tmp_path / f"a{suffix}"
    files = {"a": os.urandom(5000)}
    content = (make_zip(path, files) if suffix == ".zip" else make_tar(path, files)).read_bytes()
    path.write_bytes(content[:3000] if damage == "cut" else b"<html>Not Found</html>" * 50)
    with pytest.raises(ValueError, match="is damaged or unsafe"):
        unpack(path, tmp_path / "out")
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("suffix", [".tgz", ".tar.bz2", ".tar.xz", ".zip"])
def test_damage_within_a_member_is_an_error(tmp_path: Path, suffix: str) -> None:
    """Each compression fails in its own way; a plain .tar has no checksum."""
    path = tmp_path / f"a{suffix}"
    files = {"a": "".join(f"sentence {i * i * 7919}\n" for i in range(20_000)).encode()}
    content = bytearray((make_zip(path, files) if suffix == ".zip" else make_tar(path, files)).read_bytes())
    content[len(content) // 2 : len(content) // 2 + 20] = b"\xff" * 20
    path.write_bytes(content)
    with pytest.raises(ValueError, match="is damaged or unsafe"):
        unpack(path, tmp_path / "out")


def test_full_disk_is_reported_as_such_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error must not blame the archive."""

    def fill(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    archive = make_tar(tmp_path / "a.tar", FILES)
    monkeypatch.setattr(unpack_module, "unpack_tar", fill)
    with pytest.raises(OSError, match="No space left on device") as caught:
        unpack(archive, tmp_path / "out")
    assert caught.value.errno == errno.ENOSPC
    assert [path.name for path in tmp_path.iterdir()] == ["a.tar"]


def test_compressed_text_is_not_an_archive() -> None:
    """train.en.gz is read directly; train.tar.gz is unpacked."""
    names = ["a.tar", "a.tgz", "a.tar.gz", "a.tar.bz2", "a.tar.xz", "a.zip"]
    assert all(map(is_archive, names))
    assert not any(map(is_archive, ["a", "a.gz", "a.bz2", "a.xz", "a.zst", "a.txt"]))
