"""Verified files from the network: mirrors tried in turn, and a digest that each file must have, if known."""

import contextlib
import fcntl
import hashlib
import logging
from collections.abc import Iterator, Sequence
from pathlib import Path

from convs2s.text.sources.checksum import algorithm, file_digest, file_sha256
from convs2s.text.sources.transfer import TransferRefused, file_name, persist

logger = logging.getLogger(__name__)


class WrongFile(TransferRefused):
    """What this mirror has under the URL is another file."""


def fetch(urls: Sequence[str], digest: str | None, local: Path, downloads: Path) -> Path:
    """Return a file: from `local`, from an earlier run, or else from the first mirror that has it.

    Args:
        urls: of the same file, tried in turn; the first one gives its name.
        digest: SHA-256 or MD5 of the file as it lies on the server. None: nobody has published one; any file
            is taken then, and a warning tells its SHA-256.
        local: folder whose file of that name is taken as it stands if its digest is right.
        downloads: where fetched files are kept, named by `download_key`. What was begun there is resumed.

    Raises:
        ConnectionError: if no mirror could be reached or had the file.
        ValueError: if a mirror's file has another digest, or a URL is not http, https or file.
        OSError: if the file cannot be written, for instance on a full disk.
    """
    name, *_ = [file_name(url) for url in urls]  # so that the scheme of each is checked
    own = local / name
    if own.is_file():
        if fits(own, digest):
            tell_unverified(own, digest)
            return own
        kind = algorithm(digest or "")
        logger.warning("%s is not taken: its %s is %s, wanted %s", own, kind, file_digest(own, kind), digest)
    downloads.mkdir(parents=True, exist_ok=True)
    key = download_key(urls, digest)
    kept = downloads / f"{key}.{name}"
    # The stages of several splits may run at once and want the same archive.
    with locked(downloads / f"{key}.lock"):
        if not (kept.is_file() and fits(kept, digest)):
            part = downloads / f"{key}.part"
            from_mirrors(urls, digest, part, f"{own} may hold it instead")
            tell_unverified(part, digest, name)
            part.replace(kept)
    return kept


def download_key(urls: Sequence[str], digest: str | None) -> str:
    """Return what a download is kept under: its digest, or without one something made of its first URL."""
    return digest or f"unverified-{hashlib.sha256(urls[0].encode()).hexdigest()[:16]}"


def fits(path: Path, digest: str | None) -> bool:
    """Return whether a file has the digest; any file has an unknown one."""
    return digest is None or file_digest(path, algorithm(digest)) == digest


def tell_unverified(path: Path, digest: str | None, name: str | None = None) -> None:
    """Warn if nothing vouches for a file, with the hash by which it can be known from now on."""
    if digest is None:
        logger.warning(
            "%s is not verified, for no checksum of it is known; its sha256 is %s. To have it checked from "
            "now on, write that into params.yaml in place of null.",
            name or path.name,
            file_sha256(path),
        )


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Keep other processes out; the lock of one that died is free."""
    with path.open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def from_mirrors(urls: Sequence[str], digest: str | None, part: Path, hint: str) -> None:
    """Fill `part` from the first mirror that gives the right file.

    Raises:
        ConnectionError: if none could be reached or had the file.
        ValueError: if at least one had another file.
    """
    refusals: list[tuple[str, TransferRefused]] = []
    for url in urls:
        try:
            from_mirror(url, digest, part)
            return
        except TransferRefused as refusal:
            refusals.append((url, refusal))
            logger.warning("%s: %s", url, refusal)
    reasons = "\n".join(f"  {url}: {refusal}" for url, refusal in refusals)
    checked = "urls" if digest is None else f"urls and {algorithm(digest)}"
    message = (
        f"{file_name(urls[0])} could not be fetched:\n{reasons}\n"
        f"Check the network, and {checked} in params.yaml, then run this again: what has arrived is "
        f"kept and resumed. {hint}."
    )
    wrong = any(isinstance(refusal, WrongFile) for _, refusal in refusals)
    raise ValueError(message) if wrong else ConnectionError(message)


def from_mirror(url: str, digest: str | None, part: Path) -> None:
    """Fill `part` from one mirror, beginning where it ends.

    Raises:
        TransferRefused: if that fails for good.
    """
    if digest is None:  # nothing would reveal halves of two files, so each mirror has a part of its own
        own = part.with_name(f"{download_key([url], None)}.part")
        persist(url, own)
        own.replace(part)
        return
    resumed = part.exists()
    kind = algorithm(digest)
    if resumed and fits(part, digest):  # killed between the last byte and the renaming
        return
    persist(url, part)
    found = file_digest(part, kind)
    if found != digest:
        part.unlink()
        if resumed:  # the fault may lie in what was there before, so this mirror has another chance
            from_mirror(url, digest, part)
            return
        raise WrongFile(f"{kind} is {found}, wanted {digest}; the file was deleted")
