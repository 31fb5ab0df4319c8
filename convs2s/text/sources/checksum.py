"""Digests that identify files: SHA-256, or MD5 where only that is known."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

MD5_LENGTH = 32  # hexadecimal digits; SHA-256 has 64


def algorithm(digest: str) -> str:
    """Return the algorithm of a hexadecimal digest, md5 or sha256, from its length."""
    return "md5" if len(digest) == MD5_LENGTH else "sha256"


def file_digest(path: Path, name: str) -> str:
    """Return the digest of a file's bytes by the named algorithm, in lower-case hexadecimal."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, name).hexdigest()


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file's bytes, in lower-case hexadecimal."""
    return file_digest(path, "sha256")


def used_files(paths: Sequence[Path]) -> list[dict[str, str]]:
    """Return the name and hash of each file, for the provenance; without folders, which differ by machine."""
    return [{"name": path.name, "sha256": file_sha256(path)} for path in paths]
