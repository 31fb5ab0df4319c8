"""What a reader of sentence pairs leaves out or finds odd: counted by kind, in one warning per file."""

import logging
from pathlib import Path

from convs2s.base.messages import visible

logger = logging.getLogger(__name__)


class Notes:
    """Counts what was noticed in a file, with the first line of each kind."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._counts: dict[str, int] = {}
        self._first_lines: dict[str, int] = {}

    def add(self, kind: str, line: int, count: int = 1) -> None:
        """Count cases of this kind; `line` is that of the first, counted from 1."""
        self._counts[kind] = self._counts.get(kind, 0) + count
        self._first_lines.setdefault(kind, line)

    def warn(self) -> None:
        """Log one warning with all kinds, their numbers and first lines; nothing if there are none."""
        kinds = (
            f"{kind}: {count:,}, first in line {self._first_lines[kind]:,}"
            for kind, count in self._counts.items()
        )
        if self._counts:
            logger.warning("%s: %s", self._path, visible("; ".join(kinds)))
