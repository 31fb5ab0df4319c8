"""Checks of params.yaml values that can take more than one form."""

import re
from typing import Any, Literal

LANGUAGE = r"^[a-z]{2,3}$"
SHA256 = r"^[0-9a-f]{64}$"
MD5 = r"^[0-9a-f]{32}$"
PATTERNS = {
    LANGUAGE: "a code of two or three lowercase letters, such as en",
    SHA256: "64 digits 0 to 9 and a to f, as sha256sum prints them",
    MD5: "32 digits 0 to 9 and a to f, as md5sum prints them",
}
"""The regular expressions of texts in params.yaml, in words for messages."""

LARGEST_ALPHA = 10
"""Exponent in |y|^alpha; much larger values overflow, and 2 already favors the longest hypothesis."""


def checksum_key(file: Any) -> str:
    """Return the tag of a file's class, chosen by its checksum key."""
    return "by_md5" if "md5" in (file if isinstance(file, dict) else dict(file)) else "by_sha256"


def without_password(url: str) -> str:
    """Reject a URL with a user name or password, without quoting it."""
    if re.match(r"\w+://[^/?#]*@", url):
        raise ValueError(
            "the URL has a user name or password, which git and DVC would record; wanted none: fetch the "
            "file yourself and put it into download.folder"
        )
    return url


def number_or_tuned(value: object) -> float | Literal["tuned"]:
    """Check the alpha of params.yaml; a union type would report a bad value twice."""
    if value == "tuned":
        return "tuned"
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= LARGEST_ALPHA:
        return float(value)
    raise ValueError(f"found {value!r}, wanted a number from 0 to {LARGEST_ALPHA}, or tuned")
