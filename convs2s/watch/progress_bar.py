"""A progress bar that updates often on a terminal but does not flood a log."""

import sys
from typing import Any

from tqdm import tqdm

SECONDS_ON_TERMINAL, SECONDS_IN_LOG = 0.5, 20.0


class ProgressBar(tqdm):  # type: ignore[misc]  # untyped
    """A bar on stderr; in a log, it is printed every 20 seconds.

    Args:
        settings: passed on to tqdm.
    """

    def __init__(self, **settings: Any) -> None:
        seconds = SECONDS_ON_TERMINAL if sys.stderr.isatty() else SECONDS_IN_LOG
        # After maxinterval, by default 10 seconds, a tqdm thread prints the bar in any case.
        super().__init__(mininterval=seconds, maxinterval=max(seconds, 10.0), **settings)

    def advance(self, count: int = 1, note: str = "") -> None:
        """Count some more items; show a note behind the bar."""
        if note:
            self.set_postfix_str(note, refresh=False)
        self.update(count)
