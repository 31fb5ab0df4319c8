"""A progress bar that people can watch and that does not fill a log."""

import sys
from collections.abc import Iterable
from typing import Any

from tqdm import tqdm

SECONDS_ON_TERMINAL, SECONDS_IN_LOG = 0.5, 20.0


def progress_bar(items: Iterable[Any] | None = None, **settings: Any) -> tqdm:
    """Return a tqdm bar on stderr, around `items` if there are any; a log gets it every 20 seconds.

    Args:
        settings: of tqdm.
    """
    seconds = SECONDS_ON_TERMINAL if sys.stderr.isatty() else SECONDS_IN_LOG
    # Beyond maxinterval, 10 seconds unless set, a thread of tqdm's prints the bar.
    return tqdm(items, mininterval=seconds, maxinterval=max(seconds, 10.0), **settings)
