"""Which archives are unpacked, and which are refused."""

import errno
import os
import tarfile
from pathlib import Path
from typing import Any

import pytest

from convs2s.text.sources import unpack as unpack_module
from convs2s.text.sources.unpack import is_archive, unpack
from tests.web import TAR_MODES, make_archive

FILES = {"train.en": b"one\n" * 500, "deep/er/train.de": b"eins\n" * 500}
SUFFIXES = [*TAR_MODES, ".zip"]


def write(path: Path, files: dict[str, bytes], *special: tarfile.TarInfo) -> Path:
    """Write an archive."""
    path.write_bytes(make_archive(path.name, files, *special))
    return path


def special(name: str, kind: bytes, target: str = "") -> tarfile.TarInfo:
    """Return a tar member that is not a regular file."""
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, target
    return member


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_an_archive_is_unpacked(tmp_path: Path, suffix: str) -> None:
    """Every compression works; folders need not have members of their own, but may."""
    folder = {"folder/": b""} if suffix == ".zip" else {}
    extra = [] if folder else [special("empty", tarfile.DIRTYPE)]
    unpack(write(tmp_path / f"a{suffix}", FILES | folder, *extra), tmp_path / "out")
    found = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert {path.relative_to(tmp_path / "out").as_posix(): path.read_bytes() for path in found} == FILES


@pytest.mark.parametrize("suffix", [".tar", ".zip"])
def test_no_member_lands_outside_the_folder(tmp_path: Path, suffix: str) -> None:
    """Otherwise an archive could overwrite any file of the user; tar refuses, zip strips the name."""
    archive = write(tmp_path / f"a{suffix}", {"good": b"x", "../evil": b"x"})
    if suffix == ".tar":
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
    archive = write(tmp_path / "a.tar", {"good": b"x"}, special("bad", kind, target="good"))
    with pytest.raises(ValueError, match="member 'bad' is a link, a device or another special file"):
        unpack(archive, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("suffix", "count"), [(".tar.gz", 1), (".tar.gz", 9), (".zip", 1), (".zip", 9)])
def test_an_archive_that_fills_the_disk_is_refused(
    tmp_path: Path, suffix: str, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It grows a thousandfold, in one member or over many; for small contents such growth is harmless."""
    archive = write(tmp_path / f"bomb{suffix}", {f"{n}": bytes(1_000_000 // count) for n in range(count)})
    unpack(archive, tmp_path / "out")
    monkeypatch.setattr(unpack_module, "HARMLESS", 900_000)
    with pytest.raises(ValueError, match="more than 200 times as large as the archive"):
        unpack(archive, tmp_path / "refused")
    assert {path.name for path in tmp_path.iterdir()} == {"out", archive.name}


def test_a_sparse_member_has_its_whole_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kilobyte of tar may stand for any number of zeros."""
    member = tarfile.TarInfo("sparse")
    member.pax_headers = {"GNU.sparse.major": "0", "GNU.sparse.minor": "1"}
    member.pax_headers |= {"GNU.sparse.size": str(1 << 40), "GNU.sparse.map": "0,0"}
    monkeypatch.setattr(unpack_module, "HARMLESS", 10_000_000)
    with pytest.raises(ValueError, match="more than 200 times as large as the archive"):
        unpack(write(tmp_path / "sparse.tar", {}, member), tmp_path / "out")


def cut(content: bytes) -> bytes:
    return content[:3000]


def other(content: bytes) -> bytes:
    return b"<html>Not Found</html>" * 50


def change(content: bytes) -> bytes:
    """Change bytes within a member, which only a plain .tar would not notice."""
    middle = len(content) // 2
    return content[:middle] + b"\xff" * 20 + content[middle + 20 :]


def encrypt(content: bytes) -> bytes:
    """Set the encryption flag in the table of contents of a zip."""
    flag = content.index(b"PK\x01\x02") + 8
    return content[:flag] + bytes([content[flag] | 1]) + content[flag + 1 :]


DAMAGES = [(suffix, damage) for suffix in SUFFIXES for damage in (cut, other, change)]
DAMAGES.remove((".tar", change))


@pytest.mark.parametrize(("suffix", "damage"), [*DAMAGES, (".zip", encrypt)])
def test_an_archive_that_cannot_be_read_is_an_error_and_leaves_nothing(
    tmp_path: Path, suffix: str, damage: Any
) -> None:
    """A partly unpacked corpus must not pass for a complete one; each compression fails in its own way."""
    files = {"a": b"".join(b"sentence %d\n" % (i * i * 7919) for i in range(2000))}
    path = write(tmp_path / f"a{suffix}", files)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ValueError, match="is damaged or unsafe"):
        unpack(path, tmp_path / "out")
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_full_disk_is_reported_as_such_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error must not blame the archive."""

    def fill(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    archive = write(tmp_path / "a.tar", FILES)
    monkeypatch.setattr(unpack_module, "unpack_tar", fill)
    with pytest.raises(OSError, match="No space left on device") as caught:
        unpack(archive, tmp_path / "out")
    assert caught.value.errno == errno.ENOSPC
    assert [path.name for path in tmp_path.iterdir()] == ["a.tar"]


def test_compressed_text_is_not_an_archive() -> None:
    """train.en.gz is read directly; train.tar.gz is unpacked."""
    assert all(map(is_archive, [f"a{suffix}" for suffix in SUFFIXES]))
    assert not any(map(is_archive, ["a", "a.gz", "a.bz2", "a.xz", "a.zst", "a.txt"]))
