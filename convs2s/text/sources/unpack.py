"""Unpack untrusted archives safely: only plain files, and none outside the folder.

Members are copied as byte streams. `tarfile`'s own extraction would also set owners, modes and links, and
early versions of Python 3.11 lack its filter against malicious members.
"""

import errno
import lzma
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO

from convs2s.text.corpus.files import atomic_path

# Text usually compresses to a tenth, rarely to a fiftieth. An archive that grows by more than GROWTH, and
# beyond HARMLESS bytes, is meant to fill the disk.
GROWTH, HARMLESS = 200, 1 << 30
ZIP_ENCRYPTED = 0x1  # bit of a member's flags
TAR_SUFFIXES = (".tar", ".tgz", ".tar.gz", ".tar.bz2", ".tar.xz")
# gzip and bz2 raise an OSError without errno; zipfile does not support every compression method.
DAMAGED = (
    tarfile.TarError, zipfile.BadZipFile, EOFError, zlib.error, lzma.LZMAError, NotImplementedError, OSError
)  # fmt: skip


def is_archive(name: str) -> bool:
    """Return whether a file of this name is an archive; compressed text is not."""
    return name.endswith((*TAR_SUFFIXES, ".zip"))


def unpack(archive: Path, folder: Path) -> None:
    """Unpack a .tar (also .gz, .bz2, .xz) or .zip archive into a folder, which appears only once complete.

    Raises:
        ValueError: if a member's name points outside the folder, a member is a link, a device or encrypted,
            the content is larger than both GROWTH times the archive and HARMLESS bytes, or the archive is
            damaged. Nothing is left behind.
    """
    room = max(GROWTH * archive.stat().st_size, HARMLESS)
    with atomic_path(folder) as temporary:
        temporary.mkdir()
        try:
            for name, content in members(archive):
                room -= copy(content, temporary / name, archive, room)
        except DAMAGED as error:
            # The disk's fault, not the data's; except EINVAL, when damaged data makes zipfile seek anywhere.
            if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
                raise
            raise ValueError(
                f"{archive} is damaged or not what its name says: {error}. Wanted "
                f"{', '.join(TAR_SUFFIXES)} or .zip: compare its sha256 with the publisher's, "
                "correct the one in params.yaml, and fetch it again."
            ) from error


def copy(content: IO[bytes], path: Path, archive: Path, room: int) -> int:
    """Write a member to a file; a later member of the same name wins, as with tar.

    Returns:
        Its size in bytes.

    Raises:
        ValueError: if one member is a file where another needs a folder, or it has more than `room` bytes.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        stream = path.open("wb")
    except (FileExistsError, NotADirectoryError, IsADirectoryError) as error:
        raise unsafe_member(archive, path.name, "is both a file and a folder") from error
    size = 0
    with content, stream:
        while chunk := content.read(1 << 20):
            size += len(chunk)
            if size > room:
                why = f"with it, the content is more than {GROWTH} times as large as the archive"
                raise unsafe_member(archive, path.name, why)
            stream.write(chunk)
    return size


def members(archive: Path) -> Iterator[tuple[str, IO[bytes]]]:
    """Yield the name and content of each file in an archive, in order.

    Raises:
        ValueError: if a member is unsafe.
    """
    return zip_members(archive) if archive.name.endswith(".zip") else tar_members(archive)


def tar_members(archive: Path) -> Iterator[tuple[str, IO[bytes]]]:
    """Yield the files of a tar archive, as `members` does."""
    with tarfile.open(archive, "r:*") as tar:
        for member in tar:
            name = safe_name(archive, member.name)
            if member.isdir():
                continue
            if not member.isreg():
                what = "a link" if member.issym() or member.islnk() else "a device or other special file"
                raise unsafe_member(archive, member.name, f"is {what}")
            content = tar.extractfile(member)
            assert content is not None, "a regular member has content"
            yield name, content
        # gzip's checksum follows the last block, which tar has no reason to read.
        assert tar.fileobj is not None, "an open archive has a file"
        while tar.fileobj.read(1 << 20):
            pass


def zip_members(archive: Path) -> Iterator[tuple[str, IO[bytes]]]:
    """Yield the files of a zip archive, as `members` does."""
    with zipfile.ZipFile(archive) as file:
        for member in file.infolist():
            name = safe_name(archive, member.filename)
            if member.is_dir():
                continue
            kind = stat.S_IFMT(member.external_attr >> 16)  # 0 when made on a system without Unix modes
            if kind not in (0, stat.S_IFREG):
                what = "a link" if stat.S_ISLNK(kind) else "a device or other special file"
                raise unsafe_member(archive, member.filename, f"is {what}")
            if member.flag_bits & ZIP_ENCRYPTED:
                raise unsafe_member(archive, member.filename, "is encrypted")
            yield name, file.open(member)


def safe_name(archive: Path, name: str) -> str:
    """Return a member's name if it stays within the folder.

    Raises:
        ValueError: if it is absolute, contains `..`, or has a backslash or colon, which other systems treat
            as separators.
    """
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or any(sign in name for sign in "\\:\0") or not name:
        raise unsafe_member(archive, name, "has a name that points, or could point, outside the folder")
    return str(path)


def unsafe_member(archive: Path, name: str, why: str) -> ValueError:
    """Return the error for a member that must not be unpacked."""
    return ValueError(
        f"{archive}, member {name!r}: {why}. Wanted plain files with relative names; nothing was unpacked. "
        "If you trust the archive, unpack it by hand and read the files with `kind: files`."
    )
