"""Unpack untrusted archives: only plain files, none outside the folder, and no more than text would take."""

import errno
import tarfile
import zipfile
from pathlib import Path

from convs2s.base.files import atomic_path

# Text usually compresses to a tenth, rarely to a fiftieth. An archive that grows by more than GROWTH, and
# beyond HARMLESS bytes, is meant to fill the disk.
GROWTH, HARMLESS = 200, 1 << 30
SUFFIXES = (".tar", ".tgz", ".tar.gz", ".tar.bz2", ".tar.xz", ".zip")


def is_archive(name: str) -> bool:
    """Return whether a file of this name is an archive; compressed text is not."""
    return name.endswith(SUFFIXES)


def unpack(archive: Path, folder: Path) -> None:
    """Unpack a .tar (also .gz, .bz2, .xz) or .zip archive into a folder, which appears only once complete.

    Raises:
        ValueError: if a member is a link, a device or encrypted, or would be outside the folder; if the
            content is larger than both GROWTH times the archive and HARMLESS bytes; or if the archive is
            damaged. Nothing is left behind.
    """
    with atomic_path(folder) as temporary:
        temporary.mkdir()
        try:
            (unpack_zip if archive.name.endswith(".zip") else unpack_tar)(archive, temporary)
        except Exception as error:  # each compression has its own
            # The disk's fault, not the data's. Damage is an OSError without errno in gzip and bz2, and EINVAL
            # if it makes zipfile seek anywhere.
            if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
                raise
            raise ValueError(
                f"{archive} is damaged or unsafe: {error}. Expected plain files with relative names in "
                f"{', '.join(SUFFIXES)}: compare its sha256 with the publisher's, correct the one in "
                "params.yaml, and fetch it again. If you trust it, unpack it by hand and read the files with "
                "`kind: files`."
            ) from error


def unpack_tar(archive: Path, folder: Path) -> None:
    """Unpack a tar archive, as `unpack` does."""
    size = 0

    def check(member: tarfile.TarInfo, path: str) -> tarfile.TarInfo | None:
        nonlocal size
        size += member.size
        check_size(size, archive)
        if not (member.isreg() or member.isdir()):
            raise tarfile.TarError(f"member {member.name!r} is a link, a device or another special file")
        return tarfile.data_filter(member, path)

    with tarfile.open(archive, "r:*") as tar:
        tar.extractall(folder, filter=check)
        # gzip's checksum follows the last block, which tar has no reason to read.
        assert tar.fileobj is not None, "an open archive has a file"
        while tar.fileobj.read(1 << 20):
            pass


def unpack_zip(archive: Path, folder: Path) -> None:
    """Unpack a zip archive, as `unpack` does; zipfile itself keeps members within the folder."""
    with zipfile.ZipFile(archive) as file:
        check_size(sum(member.file_size for member in file.infolist()), archive)
        file.extractall(folder)


def check_size(size: int, archive: Path) -> None:
    """Raise a TarError if an archive holds too many bytes."""
    if size > max(GROWTH * archive.stat().st_size, HARMLESS):
        raise tarfile.TarError(f"its content is more than {GROWTH} times as large as the archive")
