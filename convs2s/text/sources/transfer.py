"""Fetch one file from one server: repeated attempts, each resuming where the last one broke off.

Messages show URLs without their queries, which may contain tokens; URLs with a password are refused.
"""

import http.client
import logging
import re
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO, Any
from urllib.parse import unquote, urljoin, urlsplit, urlunsplit

from convs2s.watch.progress_bar import ProgressBar

logger = logging.getLogger(__name__)

SCHEMES = ("http", "https", "file")
TIMEOUT = 60.0  # seconds without a byte
ATTEMPTS = 5  # without progress
PAUSE = 1.0  # seconds after the first failure, doubled after each further one
CHUNK = 1 << 18  # bytes
# HTTP statuses that may go away within a minute: timeout, too many requests, and server errors.
TRANSIENT = {408, 425, 429, 500, 502, 503, 504}
# When these formats are read, a truncated file is noticed.
SELF_CHECKING = (".gz", ".tgz", ".bz2", ".xz", ".zst", ".zip")


class BrokenOff(Exception):
    """A transfer ended early or did not start; another attempt may succeed."""


class TransferRefused(Exception):
    """This mirror does not have the right file; another may."""


class WebRedirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects only to http and https: a server must not point us to ftp, or to local files."""

    def http_error_302(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: http.client.HTTPMessage,
    ) -> Any:
        """Follow a redirect; raise TransferRefused if it leads elsewhere."""
        target = urljoin(req.full_url, headers.get("Location") or "")
        if urlsplit(target).scheme not in ("http", "https"):
            raise TransferRefused(f"the server redirects to {shown(target)}; wanted http:// or https://")
        return super().http_error_302(req, fp, code, msg, headers)

    http_error_301 = http_error_303 = http_error_307 = http_error_308 = http_error_302


OPENER = urllib.request.build_opener(WebRedirects)


def persist(url: str, part: Path, verified: bool) -> None:
    """Transfer the rest of a file, retrying as long as it keeps growing.

    Args:
        verified: whether the caller verifies the whole file; if not, its length must be known.

    Raises:
        TransferRefused: if the server does not have the file, nothing has arrived for several attempts, or a
            truncated file would go unnoticed.
    """
    failures, most = 0, size(part)
    while True:
        try:
            transfer(url, part, verified)
            return
        except BrokenOff as reason:
            # A server without ranges starts over each time: only bytes beyond the old end are progress.
            failures = 0 if size(part) > most else failures + 1
            most = max(most, size(part))
            if failures >= ATTEMPTS:
                raise TransferRefused(f"{reason}, {ATTEMPTS} times in a row") from reason
            logger.warning("%s: %s; trying again", shown(url), reason)
            time.sleep(PAUSE * 2 ** max(failures - 1, 0))


def transfer(url: str, part: Path, verified: bool) -> None:
    """Append the missing bytes to `part`; start over if the server does not support ranges.

    Raises:
        BrokenOff: if the transfer ended early or the server is busy.
        TransferRefused: if the server does not have the file, or a truncated file would go unnoticed.
    """
    begin = size(part)
    with answer(url, begin, part) as response:
        begin = begin if is_rest(response, begin) else 0
        length = response.headers.get("Content-Length", "")
        end = begin + int(length) if length.isdecimal() else None
        ends = end is not None or getattr(response, "chunked", False)
        if not (ends or verified or file_name(url).endswith(SELF_CHECKING)):
            raise TransferRefused(
                "the server does not say how long the file is, so a truncated download would go unnoticed. "
                "Wanted its sha256 in params.yaml; or fetch it yourself and put it into download.folder"
            )
        with (
            # Unbuffered, because closing a buffer would try again to write to a full disk.
            part.open("ab" if begin else "wb", buffering=0) as stream,
            ProgressBar(desc=file_name(url), initial=begin, total=end, unit="B", unit_scale=True) as bar,
        ):
            for chunk in chunks(response):
                write(stream, chunk, part)
                bar.advance(len(chunk))
    if end is not None and size(part) < end:
        raise BrokenOff(f"connection ended after {size(part):,} of {end:,} bytes")


def is_rest(response: Any, begin: int) -> bool:
    """Return whether a response is the rest of the file from byte `begin` on, rather than all of it.

    Raises:
        TransferRefused: if it begins elsewhere.
    """
    if getattr(response, "status", None) != http.HTTPStatus.PARTIAL_CONTENT:
        return False
    content_range = response.headers.get("Content-Range", "")
    if not re.match(rf"bytes {begin}-", content_range):
        raise TransferRefused(f"asked for bytes {begin}-, the server sent {content_range!r}")
    return True


def answer(url: str, begin: int, part: Path) -> Any:
    """Request a file from byte `begin` on; return the open response.

    Raises:
        BrokenOff, TransferRefused: as `transfer`.
    """
    headers = {"User-Agent": "convs2s", "Accept-Encoding": "identity"}
    if begin:
        headers["Range"] = f"bytes={begin}-"
    try:
        return OPENER.open(urllib.request.Request(url, headers=headers), timeout=TIMEOUT)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE and begin:
            part.unlink()
            raise BrokenOff("the partial download is longer than the file") from error
        reason = f"HTTP {error.code} {error.reason}"
        raise BrokenOff(reason) if error.code in TRANSIENT else TransferRefused(reason) from error
    except http.client.InvalidURL as error:
        raise TransferRefused("the URL has a wrong port, spaces or control characters; write %20") from error
    except (OSError, http.client.HTTPException) as error:  # URLError is an OSError
        if isinstance(getattr(error, "reason", None), FileNotFoundError):  # file://
            raise TransferRefused(f"no such file: {error.reason.filename}") from error  # type: ignore[union-attr]
        raise BrokenOff(f"{getattr(error, 'reason', None) or error!r}") from error


def chunks(response: Any) -> Iterator[bytes]:
    """Yield the bytes of a response as they arrive.

    Raises:
        BrokenOff: if the connection breaks or times out.
    """
    while True:
        try:
            chunk = response.read(CHUNK)
        except (OSError, http.client.HTTPException) as error:
            raise BrokenOff(f"connection broke: {error!r}") from error
        if not chunk:
            return
        yield chunk


def write(stream: Any, chunk: bytes, part: Path) -> None:
    """Write a chunk.

    Raises:
        OSError: with the file's name, if the disk is full or fails; another mirror would not help.
    """
    try:
        rest = memoryview(chunk)
        while rest:
            rest = rest[stream.write(rest) :]
    except OSError as error:
        raise OSError(
            error.errno,
            f"{error.strerror or error}. The partial download is kept; free up space and run this again",
            str(part),
        ) from error


def size(path: Path) -> int:
    """Return a file's length in bytes; 0 if it does not exist."""
    return path.stat().st_size if path.exists() else 0


def file_name(url: str) -> str:
    """Return the last component of a URL's path.

    Raises:
        ValueError: if there is none, the scheme is unknown, or the URL has a password.
    """
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise ValueError(f"a URL in params.yaml cannot be read: {error}. Wanted https://host/file") from error
    if parts.scheme not in SCHEMES:
        raise ValueError(f"URL {shown(url)!r}: wanted one that starts with http://, https:// or file://")
    if "@" in parts.netloc:
        raise ValueError(
            f"URL {shown(url)!r} has a user name or password, which git and DVC would record. Wanted none: "
            "fetch the file yourself and put it into download.folder."
        )
    name = PurePosixPath(unquote(parts.path)).name
    if name in ("", ".", ".."):
        raise ValueError(
            f"URL {shown(url)!r} has no file name at its end; wanted one such as https://host/train.en.gz"
        )
    return name


def shown(url: str) -> str:
    """Return a URL for messages: without user name, password, query and fragment."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path, "..." if parts.query else "", ""))
