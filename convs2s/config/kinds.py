"""Values of params.yaml that may be of several kinds: which kind one is."""

import re
from typing import Any, Literal

LARGEST_ALPHA = 10
"""Of |y|^alpha; much larger ones overflow, and 2 already favors the longest hypothesis."""


def checksum_key(file: Any) -> str:
    """Return the tag of a file's class, selected by its checksum key."""
    return "by_md5" if "md5" in (file if isinstance(file, dict) else dict(file)) else "by_sha256"


def without_password(url: str) -> str:
    """Check that a URL has neither user name nor password, which are not shown."""
    if re.match(r"\w+://[^/?#]*@", url):
        raise ValueError(
            "the URL has a user name or password, which git and DVC would record; wanted none: fetch the "
            "file yourself and put it into download.folder"
        )
    return url


def number_or_tuned(value: object) -> float | Literal["tuned"]:
    """Check an alpha of params.yaml, with one message for both kinds where a union would give two."""
    if value == "tuned":
        return "tuned"
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= LARGEST_ALPHA:
        return float(value)
    raise ValueError(f"found {value!r}, wanted a number from 0 to {LARGEST_ALPHA}, or tuned")
