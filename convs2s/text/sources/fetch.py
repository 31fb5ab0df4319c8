"""Verified files from the network: mirrors tried in turn, and a SHA-256 that each file must have."""

import contextlib
import fcntl
import logging
from collections.abc import Iterator, Sequence
from pathlib import Path

from convs2s.text.sources.checksum import file_sha256
from convs2s.text.sources.transfer import Refused, file_name, persist

logger = logging.getLogger(__name__)


class WrongFile(Refused):
    """What this mirror has under the URL is another file."""


def fetch(urls: Sequence[str], sha256: str, local: Path, downloads: Path) -> Path:
    """Return a verified file: from `local`, from an earlier run, or else from the first mirror that has it.

    Args:
        urls: of the same file, tried in turn; the first one gives its name.
        sha256: of the file as it lies on the server.
        local: folder whose file of that name is taken as it stands if its hash is right.
        downloads: where fetched files are kept, named by hash. What was begun there is resumed.

    Raises:
        ConnectionError: if no mirror could be reached or had the file.
        ValueError: if a mirror's file has another hash, or a URL is not http, https or file.
        OSError: if the file cannot be written, for instance on a full disk.
    """
    name, *_ = [file_name(url) for url in urls]  # so that the scheme of each is checked
    own = local / name
    if own.is_file():
        found = file_sha256(own)
        if found == sha256:
            return own
        logger.warning("%s is not taken: its sha256 is %s, wanted %s", own, found, sha256)
    downloads.mkdir(parents=True, exist_ok=True)
    kept = downloads / f"{sha256}.{name}"
    # The stages of several splits may run at once and want the same archive.
    with locked(downloads / f"{sha256}.lock"):
        if not (kept.is_file() and file_sha256(kept) == sha256):
            part = downloads / f"{sha256}.part"
            from_mirrors(urls, sha256, part, f"{own} may hold it instead")
            part.replace(kept)
    return kept


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Keep other processes out; the lock of one that died is free."""
    with path.open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def from_mirrors(urls: Sequence[str], sha256: str, part: Path, hint: str) -> None:
    """Fill `part` from the first mirror that gives the right file.

    Raises:
        ConnectionError: if none could be reached or had the file.
        ValueError: if at least one had another file.
    """
    refusals: list[tuple[str, Refused]] = []
    for url in urls:
        try:
            from_mirror(url, sha256, part)
            return
        except Refused as refusal:
            refusals.append((url, refusal))
            logger.warning("%s: %s", url, refusal)
    reasons = "\n".join(f"  {url}: {refusal}" for url, refusal in refusals)
    message = (
        f"{file_name(urls[0])} could not be fetched:\n{reasons}\n"
        "Check the network, and urls and sha256 in params.yaml, then run this again: what has arrived is "
        f"kept and resumed. {hint}."
    )
    wrong = any(isinstance(refusal, WrongFile) for _, refusal in refusals)
    raise ValueError(message) if wrong else ConnectionError(message)


def from_mirror(url: str, sha256: str, part: Path) -> None:
    """Fill `part` from one mirror, beginning where it ends.

    Raises:
        Refused: if that fails for good.
    """
    resumed = part.exists()
    if resumed and file_sha256(part) == sha256:  # killed between the last byte and the renaming
        return
    persist(url, part)
    found = file_sha256(part)
    if found != sha256:
        part.unlink()
        if resumed:  # the fault may lie in what was there before, so this mirror has another chance
            from_mirror(url, sha256, part)
            return
        raise WrongFile(f"sha256 is {found}, wanted {sha256}; the file was deleted")
