"""A progress bar that updates often on a terminal but does not flood a log."""

import sys
from collections.abc import Iterable
from typing import Any

from tqdm import tqdm

SECONDS_ON_TERMINAL, SECONDS_IN_LOG = 0.5, 20.0


def progress_bar(items: Iterable[Any] | None = None, **settings: Any) -> tqdm:
    """Return a tqdm bar on stderr, around `items` if given; in a log, it is printed every 20 seconds.

    Args:
        settings: passed on to tqdm.
    """
    seconds = SECONDS_ON_TERMINAL if sys.stderr.isatty() else SECONDS_IN_LOG
    # After maxinterval, by default 10 seconds, a tqdm thread prints the bar in any case.
    return tqdm(items, mininterval=seconds, maxinterval=max(seconds, 10.0), **settings)
