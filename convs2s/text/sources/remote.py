"""A corpus on the network: files and archives, fetched with pooch from the first mirror that has them.

Messages show URLs without queries, which may contain tokens, and without passwords.
"""

import difflib
import errno
import hashlib
import logging
import reprlib
import stat
import tarfile
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any
from urllib.parse import unquote, urlsplit

import pooch
import requests
from filelock import FileLock

from convs2s.base.files import atomic_path
from convs2s.base.messages import redact, visible
from convs2s.base.progress_bar import ProgressBar
from convs2s.config.download import RemoteFile, UrlSource
from convs2s.text.sources.pair_files import Part, file_part, list_file_names

logger = logging.getLogger(__name__)
pooch.get_logger().setLevel("WARNING")  # below that, it prints whole URLs

ARCHIVES = (".tar", ".tgz", ".tar.gz", ".tar.bz2", ".tar.xz", ".zip")
GROWTH = 200
"""How many times its own size an archive may take when unpacked.

Compression shrinks text to a fifth, and to a fiftieth if its lines are nearly the same.
"""
ALWAYS_ALLOWED = 1 << 30
"""Bytes that any archive may take when unpacked."""
FILE_BYTES = 4096
"""What each file and folder takes at least, on most disks."""
ALWAYS_ALLOWED_FILES = 10_000
"""Files and folders that any archive may have."""
DEEPEST = 100
"""Folders within each other; Python deletes and lists each in a call of its own, and it has 1,000."""
LONGEST_NAME = 1 << 20
"""Bytes of a tar's extended header, which has long names and numbers, and which tarfile reads into memory."""
EXTENDED = (
    tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE, tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
)  # fmt: skip
BLOCK = 1 << 20  # bytes written at once
RETRIES = 3  # of each mirror, with pauses of 1, 2 and 3 seconds


def remote_part(source: UrlSource, languages: tuple[str, str], local: Path, downloads: Path) -> Part:
    """Fetch, unpack and open a corpus.

    Args:
        source: the files to fetch, and which of them, or of the files in archives, hold the pairs.
        local: folder whose files are used instead of the network's if name and checksum match.
        downloads: where fetched and unpacked files are kept.
    """
    members = list[tuple[str, Path]]()
    for file in source.fetch:
        members += provide(file, local, downloads).items()
    names = list_file_names(source)
    part = file_part([locate(name, members) for name in names], source.columns, languages)
    # Use the requested names: a fetched file's name contains a hash, unlike that of a file in `local`.
    used = [{**file, "name": name} for file, name in zip(part.provenance["files"], names, strict=True)]
    return Part(" and ".join(names), part.pairs, {"kind": "url", "files": used})


def provide(file: RemoteFile, local: Path, downloads: Path) -> dict[str, Path]:
    """Fetch a file if necessary; return its path by name or, for an archive, those of the unpacked files."""
    name = unquote(urlsplit(file.urls[0]).path).rpartition("/")[2]
    # Files from different places may have the same name.
    fetched = downloads / f"{hashlib.sha256(file.urls[0].encode()).hexdigest()[:16]}.{name}"
    downloads.mkdir(parents=True, exist_ok=True)
    with FileLock(downloads / "lock"):  # the stages of several splits may need the same file
        path = find_or_fetch(file, local / name, fetched)
        digest = pooch.file_hash(path)
        unpacked = downloads / digest
        if file.checksum is None:
            advice = "To have it verified from now on, put that into params.yaml instead of null."
            logger.warning("%s is not verified; its sha256 is %s. %s", name, digest, advice)
        if not name.endswith(ARCHIVES):
            return {name: path}
        if not unpacked.is_dir():
            unpack(path, unpacked)
    return {path.relative_to(unpacked).as_posix(): path for path in unpacked.rglob("*") if path.is_file()}


def find_or_fetch(file: RemoteFile, own: Path, fetched: Path) -> Path:
    """Return the path of a file with the right checksum: the user's own, or a download from a mirror.

    pooch checks downloads, new and old, tries again, and names a file only once it is complete and verified.
    """
    algorithm = "md5" if len(file.checksum or "") == 32 else "sha256"
    digest = pooch.file_hash(own, algorithm) if own.is_file() else None
    if digest and file.checksum in (None, digest):
        return own
    if digest:
        logger.warning("%s is not used: expected checksum %s, found %s", own, file.checksum, digest)
    expected = None if file.checksum is None else f"{algorithm}:{file.checksum}"
    registry = {fetched.name: expected}
    reasons = []
    for url in file.urls:
        urls = {fetched.name: url}
        mirror = pooch.create(fetched.parent, "", registry=registry, urls=urls, retry_if_failed=RETRIES)
        try:
            with ProgressBar(desc=own.name, total=0, unit="B", unit_scale=True) as bar:
                downloader = pooch.HTTPDownloader(
                    progressbar=bar,
                    chunk_size=1 << 18,  # bytes
                    timeout=60.0,  # seconds without a byte
                    headers={"User-Agent": "convs2s", "Accept-Encoding": "identity"},
                )
                return Path(mirror.fetch(fetched.name, downloader=downloader))
        except (ValueError, requests.RequestException) as error:
            reasons.append(visible(redact(f"{url}: {error}")))  # it may quote a server
            logger.warning(reasons[-1])
        except OSError as error:  # a full disk, which no other mirror can help
            raise OSError(error.errno, error.strerror, str(fetched)) from error
    text = "\n  ".join([f"{own.name} could not be fetched:", *reasons])
    advice = "Check the network, and the urls and the checksum in params.yaml, then run this again."
    raise ConnectionError(f"{text}\n{advice} {own} may hold it instead.")


def unpack(archive: Path, folder: Path) -> None:
    """Unpack an archive into a folder, which appears only once complete; nothing is written outside it."""
    with atomic_path(folder) as temporary:
        temporary.mkdir()
        allowance = Allowance(archive.stat().st_size)
        try:
            read = read_zip if archive.suffix == ".zip" else read_tar
            write_members(read(archive, allowance), temporary, allowance)
        except Exception as error:  # each compression has its own
            # The disk's fault, not the data's. Damage is an OSError without errno in gzip and bz2, and EINVAL
            # if it makes zipfile seek anywhere.
            if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
                raise
            raise ValueError(
                f"{archive} is damaged or unsafe: {error}. Expected plain files with relative names in "
                f"{', '.join(ARCHIVES)}: compare its checksum with the publisher's, and fetch it again. If "
                "you trust it, unpack it by hand and read the files with `kind: files`."
            ) from error


class Allowance:
    """What an archive of a certain size may take when unpacked; each method raises ValueError beyond that."""

    def __init__(self, size: int) -> None:
        self.bytes_allowed = max(GROWTH * size, ALWAYS_ALLOWED)
        self.files_allowed = max(GROWTH * size // FILE_BYTES, ALWAYS_ALLOWED_FILES)
        self._bytes = self._files = 0

    def take_bytes(self, number: int) -> None:
        """Count bytes of files."""
        self._bytes += number
        if self._bytes > self.bytes_allowed:
            raise ValueError(f"its files have more than {self.bytes_allowed:,} bytes, too many for its size")

    def take_file(self) -> None:
        """Count a file, a link or a folder."""
        self._files += 1
        if self._files > self.files_allowed:
            raise ValueError(
                f"it has more than {self.files_allowed:,} files and folders, too many for its size"
            )


def write_members(members: Iterable[tuple[str, IO[bytes]]], folder: Path, allowance: Allowance) -> None:
    """Write files, given by name and content, to a folder; ValueError if one leads outside or is too deep.

    Args:
        allowance: what they may take; here bytes are counted, and the folders that names imply.
    """
    root = folder.resolve()
    folders = {root}
    for name, content in members:
        if name.count("/") > DEEPEST:
            raise ValueError(f"{reprlib.repr(name)} is in more than {DEEPEST} folders within each other")
        path = (root / name.lstrip("/")).resolve()
        if not path.is_relative_to(root):
            raise ValueError(f"{name!r} leads outside")
        parent = path.parent
        while path != root and parent not in folders:
            allowance.take_file()
            folders.add(parent)
            parent = parent.parent
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            out = path.open("wb")
        except (FileExistsError, IsADirectoryError, NotADirectoryError) as error:
            raise ValueError(f"{name!r} would be a file and a folder") from error
        with out:
            while block := content.read(BLOCK):
                allowance.take_bytes(len(block))
                out.write(block)


def read_tar(archive: Path, allowance: Allowance) -> Iterator[tuple[str, IO[bytes]]]:
    """Yield the name and content of each file in a tar; a link has that of the file that it names there.

    tarfile's "data" filter and pooch's unpacker would not do: Python 3.11.2, Debian 12's, has no such filter,
    and neither limits the size.
    """

    class Header(tarfile.TarInfo):
        """A header, counted when it is read: at the first link, tarfile reads all that follow."""

        def _proc_member(self, tar: tarfile.TarFile) -> Any:  # Python 3.14.8 no longer calls frombuf
            if self.type not in EXTENDED:
                allowance.take_file()
            elif self.size > LONGEST_NAME:
                raise ValueError(f"it has a header of {self.size:,} bytes")
            return super()._proc_member(tar)  # type: ignore[misc]  # made to be overridden, says its comment

    with tarfile.open(archive, tarinfo=Header) as tar:
        for member in tar:
            if member.isdir():
                continue
            content = tar.extractfile(member)
            if content is None:
                raise ValueError(f"{member.name!r} is a device")
            yield member.name, content


def read_zip(archive: Path, allowance: Allowance) -> Iterator[tuple[str, IO[bytes]]]:
    """Yield the name and content of each file in a zip."""
    with zipfile.ZipFile(archive) as file:
        for member in file.infolist():
            allowance.take_file()
            if stat.S_ISLNK(member.external_attr >> 16):
                raise ValueError(f"{member.filename!r} is a link")
            if not member.is_dir():
                with file.open(member) as content:
                    yield member.filename, content


def locate(name: str, members: Sequence[tuple[str, Path]]) -> Path:
    """Return the only file with this name; the error lists similar names."""
    paths = [path for member, path in members if member == name]
    if len(paths) != 1:
        names = [member for member, _ in members]
        near = difflib.get_close_matches(name, names, n=20, cutoff=0.3) or names[:20]
        raise FileNotFoundError(
            f"{name!r} is the name of {len(paths)} fetched files, expected one. If archives have the same "
            f"names, give each a source entry in params.yaml; otherwise use one of: {', '.join(near)}"
        )
    return paths[0]
