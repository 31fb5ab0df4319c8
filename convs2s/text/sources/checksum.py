"""SHA-256 of files, by which the same data are known again."""

import hashlib
from pathlib import Path


def file_sha256(path: Path) -> str:
    """Return the hash of a file's bytes, in lower-case hexadecimal."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def used_files(paths: list[Path]) -> list[dict[str, str]]:
    """Return name and hash of each file, for the provenance; names only, since folders differ by machine."""
    return [{"name": path.name, "sha256": file_sha256(path)} for path in paths]
