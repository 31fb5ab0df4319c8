"""A corpus on the network: files and archives, fetched with pooch from the first mirror that has them.

Messages show URLs without queries, which may contain tokens, and without passwords.
"""

import difflib
import fcntl
import hashlib
import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pooch
import requests

from convs2s.base.files import atomic_path, temporary_folder
from convs2s.text.sources.pair_files import Part, file_part
from convs2s.text.sources.unpack import is_archive, unpack
from convs2s.watch.progress_bar import ProgressBar

logger = logging.getLogger(__name__)
pooch.get_logger().setLevel("WARNING")  # below that, it prints whole URLs

RETRIES = 3  # of each mirror, with pauses of 1, 2 and 3 seconds
TIMEOUT = 60.0  # seconds without a byte
CHUNK = 1 << 18  # bytes
MD5_LENGTH = 32  # hexadecimal digits; SHA-256 has 64
NAMES_SHOWN = 20  # in an error message
# HTTP statuses of the client's fault that may go away all the same: timeout, too early, too many requests.
TEMPORARY = {408, 425, 429}


@dataclass(frozen=True)
class Remote:
    """A file to fetch from one of several mirrors, with its SHA-256 or MD5 if one is known."""

    urls: Sequence[str]
    digest: str | None

    @property
    def name(self) -> str:
        """The last component of the first URL's path.

        Raises:
            ValueError: if any URL is not http or https, or has no name at its end.
        """
        name, *_ = [file_name(url) for url in self.urls]  # checks each URL
        return name

    @property
    def algorithm(self) -> str:
        """The algorithm of the digest, which follows from its length."""
        return "md5" if len(self.digest or "") == MD5_LENGTH else "sha256"

    @property
    def known_hash(self) -> str | None:
        """The digest as pooch expects it."""
        return self.digest and f"{self.algorithm}:{self.digest}"

    @property
    def key(self) -> str:
        """What downloads are kept under: the digest, or else a hash of the first URL."""
        return self.digest or f"unverified-{hashlib.sha256(self.urls[0].encode()).hexdigest()[:16]}"


def remote_part(
    files: Sequence[Remote],
    names: Sequence[str],
    columns: tuple[int, int] | None,
    local: Path,
    downloads: Path,
) -> Part:
    """Fetch, unpack and open a corpus.

    Args:
        files: the files to fetch.
        names: of the source file and the target file, or of one TSV: names of fetched files, or paths inside
            fetched archives.
        columns: as in `file_part`.
        local: folder whose files are used instead of the network's if name and digest match.
        downloads: where fetched and unpacked files are kept.

    Raises:
        ConnectionError: if no mirror has a file with the right digest.
        FileNotFoundError: if no fetched file has or contains a name.
        ValueError: if a URL is malformed; also as `unpack` and `file_part`.
        OSError: if a file cannot be written, for example because the disk is full.
    """
    places = [place for file in files for place in provide(file, local, downloads).items()]
    part = file_part([locate(name, places) for name in names], columns)
    fetched = [{"name": file.name} | ({file.algorithm: file.digest} if file.digest else {}) for file in files]
    # Use the requested names: a fetched file's name contains its hash, unlike that of a file in `local`.
    used = [{**file, "name": name} for file, name in zip(part.provenance["files"], names, strict=True)]
    return Part(" and ".join(names), part.pairs, {"kind": "url", "files": used, "fetched": fetched})


def provide(file: Remote, local: Path, downloads: Path) -> dict[str, Path]:
    """Fetch a file if necessary; return its path by name or, for an archive, those of the unpacked files."""
    own, fetched = local / file.name, downloads / f"{file.key}.{file.name}"
    unpacked = downloads / file.key
    downloads.mkdir(parents=True, exist_ok=True)
    with (downloads / f"{file.key}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the stages of several splits may need the same file
        if file.digest is None or not unpacked.is_dir():
            path = own if is_right(own, file) else fetched
            if path is fetched and not is_right(fetched, file):
                download(file, fetched, f"{own} may hold it instead")
            if file.digest is None:
                unpacked = downloads / f"{file.key}-{pooch.file_hash(path)[:16]}"
                logger.warning(
                    "%s is not verified, because its checksum is unknown; its sha256 is %s. To have it "
                    "verified from now on, put that into params.yaml instead of null.",
                    file.name,
                    pooch.file_hash(path),
                )
            if not is_archive(file.name):
                return {file.name: path}
            if not unpacked.is_dir():
                unpack(path, unpacked)
    return {
        path.relative_to(unpacked).as_posix(): path for path in sorted(unpacked.rglob("*")) if path.is_file()
    }


def is_right(path: Path, file: Remote) -> bool:
    """Return whether a path has a file's content, as far as that is known; warn if it has another."""
    if not path.is_file():
        return False
    if file.digest is None or (found := pooch.file_hash(path, file.algorithm)) == file.digest:
        return True
    logger.warning("%s is not used: expected %s, found %s:%s", path, file.known_hash, file.algorithm, found)
    return False


def download(file: Remote, path: Path, hint: str) -> None:
    """Fetch a file from the first mirror that has it; it appears at `path` once complete and verified."""
    reasons = []
    transferred = partial(transfer, verified=file.digest is not None)
    with atomic_path(path) as complete, temporary_folder(path.parent) as folder:
        for url in file.urls:
            registry = {file.name: file.known_hash}, {file.name: url}
            mirror = pooch.create(folder, "", None, "", None, *registry, retry_if_failed=RETRIES)
            try:
                Path(mirror.fetch(file.name, downloader=transferred)).replace(complete)
                return
            except (ValueError, FileNotFoundError, requests.RequestException) as error:
                reasons.append(f"{redact(url)}: {redact(str(error))}")
                logger.warning(reasons[-1])
        raise ConnectionError(
            f"{file.name} could not be fetched:\n  " + "\n  ".join(reasons) + "\nCheck the network, and the "
            f"urls and the checksum in params.yaml, then run this again. {hint}."
        )


def transfer(url: str, output: str, _: object, *, verified: bool) -> None:
    """Copy a URL's content to a file, with a progress bar.

    Args:
        verified: whether pooch verifies the file; if not, its length must be known.

    Raises:
        FileNotFoundError: if the server does not have the file, so that another attempt would not help.
        requests.RequestException: if the transfer fails or ends early; pooch then tries again.
    """
    with ProgressBar(desc=file_name(url), total=0, unit="B", unit_scale=True) as bar:
        pooch.HTTPDownloader(
            progressbar=bar,
            chunk_size=CHUNK,
            timeout=TIMEOUT,
            headers={"User-Agent": "convs2s", "Accept-Encoding": "identity"},
            hooks={"response": partial(refuse, verified=verified)},
        )(url, output, None)


def refuse(response: requests.Response, *, verified: bool, **_: Any) -> None:
    """Raise FileNotFoundError if another attempt would not help, or a truncated file would go unnoticed."""
    if 400 <= response.status_code < 500 and response.status_code not in TEMPORARY:
        raise FileNotFoundError(f"HTTP {response.status_code} {response.reason}")
    has_end = "Content-Length" in response.headers or "Transfer-Encoding" in response.headers
    if not (has_end or verified or response.is_redirect):
        raise FileNotFoundError(
            "the server does not say how long the file is, so a truncated download would go unnoticed. "
            "Expected its checksum in params.yaml; or fetch it yourself and put it into download.folder"
        )


def file_name(url: str) -> str:
    """Return the last component of a URL's path.

    Raises:
        ValueError: if there is none, or the scheme is unknown.
    """
    parts = urlsplit(url)
    name = unquote(parts.path).rpartition("/")[2]
    if parts.scheme not in ("http", "https") or name in ("", ".."):
        raise ValueError(
            f"URL {redact(url)!r}: expected http:// or https://, and a file name at the end, such as "
            "https://host/train.en.gz."
        )
    return name


def redact(text: str) -> str:
    """Return a text with URLs, for messages, without their user names, passwords and queries."""
    return re.sub(r"\?[^\s'\")]+", "?...", re.sub(r"//[^/\s@]*@", "//", text))


def locate(name: str, places: Sequence[tuple[str, Path]]) -> Path:
    """Return the only file with this name; the error lists those that exist."""
    found = [path for place, path in places if place == name]
    if len(found) > 1:
        raise ValueError(
            f"{name!r} is in {len(found)} of the fetched files, expected exactly one: give each archive its "
            "own source entry in params.yaml."
        )
    if not found:
        names = [place for place, _ in places]
        near = difflib.get_close_matches(name, names, n=NAMES_SHOWN, cutoff=0.3) or names[:NAMES_SHOWN]
        raise FileNotFoundError(
            f"{name!r} is not among the names of the fetched files. Expected one of these under `source`, "
            f"`target` or `tsv` in params.yaml: {', '.join(near)}"
        )
    return found[0]
