"""A part of a corpus: the pairs of one source, and their provenance."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

Split = Literal["train", "valid", "development", "test"]


class RawPair(NamedTuple):
    """A sentence pair as found in its source: without line ends, otherwise unchanged."""

    source: str
    target: str


@dataclass(frozen=True)
class Part:
    """One source of a split, opened but not yet read."""

    name: str
    """For messages and the progress bar."""
    pairs: Iterator[RawPair]
    provenance: dict[str, Any]
    """What was requested and found, ready for JSON; without times or absolute paths, which would make the
    same data look new on another day or machine."""
    wanted_sha256: str | None = None
    """The hash that the pairs must have, as 'source TAB target LF' lines; None if unknown."""
