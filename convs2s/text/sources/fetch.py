"""Verified files from the network: mirrors are tried in turn, and a known digest is checked."""

import contextlib
import fcntl
import hashlib
import logging
from collections.abc import Iterator, Sequence
from pathlib import Path

from convs2s.text.sources.checksum import algorithm, file_digest, file_sha256
from convs2s.text.sources.transfer import TransferRefused, file_name, persist, shown

logger = logging.getLogger(__name__)


class WrongFile(TransferRefused):
    """This mirror has a different file under the URL."""


def fetch(urls: Sequence[str], digest: str | None, local: Path, downloads: Path) -> Path:
    """Return a file: from `local`, from an earlier run, or else from the first mirror that has it.

    Args:
        urls: of the same file, tried in turn; its name is taken from the first.
        digest: SHA-256 or MD5 of the file as served. None if no digest is published; any file is then
            accepted, and a warning shows its SHA-256.
        local: folder whose file of that name is used in place if its digest is right.
        downloads: where fetched files are kept, named by `download_key`. Partial downloads are resumed.

    Raises:
        ConnectionError: if no mirror could be reached or had the file.
        ValueError: if a mirror's file has the wrong digest, or a URL is not http, https or file, or has a
            password.
        OSError: if the file cannot be written, for example because the disk is full.
    """
    name, *_ = [file_name(url) for url in urls]  # checks the scheme of each
    own = local / name
    if own.is_file():
        if fits(own, digest):
            warn_unverified(own, digest)
            return own
        kind = algorithm(digest or "")
        logger.warning("%s is not used: its %s is %s, wanted %s", own, kind, file_digest(own, kind), digest)
    downloads.mkdir(parents=True, exist_ok=True)
    key = download_key(urls, digest)
    kept = downloads / f"{key}.{name}"
    # The stages of several splits may run at the same time and need the same archive.
    with locked(downloads / f"{key}.lock"):
        if not (kept.is_file() and fits(kept, digest)):
            part = downloads / f"{key}.part"
            from_mirrors(urls, digest, part, f"{own} may hold it instead")
            warn_unverified(part, digest, name)
            part.replace(kept)
    return kept


def download_key(urls: Sequence[str], digest: str | None) -> str:
    """Return the name that a download is kept under: its digest, or else a hash of its first URL."""
    return digest or f"unverified-{hashlib.sha256(urls[0].encode()).hexdigest()[:16]}"


def fits(path: Path, digest: str | None) -> bool:
    """Return whether a file has the digest; any file does if the digest is None."""
    return digest is None or file_digest(path, algorithm(digest)) == digest


def warn_unverified(path: Path, digest: str | None, name: str | None = None) -> None:
    """Warn if a file cannot be verified, and show its hash so that it can be verified in future."""
    if digest is None:
        logger.warning(
            "%s is not verified, because its checksum is unknown; its sha256 is %s. To have it verified from "
            "now on, put that into params.yaml instead of null.",
            name or path.name,
            file_sha256(path),
        )


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Keep other processes out; a lock is released when the process that holds it dies."""
    with path.open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def from_mirrors(urls: Sequence[str], digest: str | None, part: Path, hint: str) -> None:
    """Fill `part` from the first mirror that has the right file.

    Raises:
        ConnectionError: if no mirror could be reached or had the file.
        ValueError: if at least one mirror had a different file.
    """
    refusals: list[tuple[str, TransferRefused]] = []
    for url in urls:
        try:
            from_mirror(url, digest, part)
            return
        except TransferRefused as refusal:
            refusals.append((url, refusal))
            logger.warning("%s: %s", shown(url), refusal)
    reasons = "\n".join(f"  {shown(url)}: {refusal}" for url, refusal in refusals)
    checked = "urls" if digest is None else f"urls and {algorithm(digest)}"
    message = (
        f"{file_name(urls[0])} could not be fetched:\n{reasons}\n"
        f"Check the network, and {checked} in params.yaml, then run this again: partial downloads are kept "
        f"and resumed. {hint}."
    )
    wrong = any(isinstance(refusal, WrongFile) for _, refusal in refusals)
    raise ValueError(message) if wrong else ConnectionError(message)


def from_mirror(url: str, digest: str | None, part: Path) -> None:
    """Fill `part` from one mirror, resuming a partial download.

    Raises:
        TransferRefused: if that fails for good.
    """
    if digest is None:  # each mirror has its own part, because a mix of two files would go unnoticed
        own = part.with_name(f"{download_key([url], None)}.part")
        persist(url, own, verified=False)
        own.replace(part)
        return
    resumed = part.exists()
    kind = algorithm(digest)
    if resumed and fits(part, digest):  # killed between the last byte and the rename
        return
    persist(url, part, verified=True)
    found = file_digest(part, kind)
    if found != digest:
        part.unlink()
        if resumed:  # the old part may be to blame, so this mirror gets another chance
            from_mirror(url, digest, part)
            return
        raise WrongFile(f"{kind} is {found}, wanted {digest}; the file was deleted")
