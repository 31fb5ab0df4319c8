"""A progress bar that updates often on a terminal but does not flood a log."""

import sys
from typing import Any, Self

from tqdm import tqdm

SECONDS_ON_TERMINAL, SECONDS_IN_LOG = 0.5, 20.0


class ProgressBar:
    """A bar on stderr; in a log, it is printed every 20 seconds.

    Args:
        settings: passed on to tqdm.
    """

    def __init__(self, **settings: Any) -> None:
        seconds = SECONDS_ON_TERMINAL if sys.stderr.isatty() else SECONDS_IN_LOG
        # After maxinterval, by default 10 seconds, a tqdm thread prints the bar in any case.
        self._bar = tqdm(mininterval=seconds, maxinterval=max(seconds, 10.0), **settings)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def advance(self, count: int = 1, note: str = "") -> None:
        """Count some more items; show a note behind the bar."""
        if note:
            self._bar.set_postfix_str(note, refresh=False)
        self._bar.update(count)

    def close(self) -> None:
        """Print the final state."""
        self._bar.close()
