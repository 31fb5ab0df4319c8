"""Threads that share out compiled work."""

import itertools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray


class Threads(ThreadPoolExecutor):
    """A number of threads; tasks whose results do not depend on each other give the same for any number."""

    def __init__(self, count: int) -> None:
        super().__init__(count)
        self.count = count

    def share(self, offsets: NDArray[np.int64], function: Callable[..., None], *arguments: Any) -> None:
        """Call function(first, last, *arguments) for ranges that together cover all items, and wait.

        Args:
            offsets: where the work of each item begins, the end being the last; ranges have about as
                much work each.
            function: compiled, so that threads run side by side.
            arguments: passed on.
        """
        cuts = np.searchsorted(offsets, np.linspace(0, offsets[-1], self.count + 1)[1:-1])
        bounds = itertools.pairwise([0, *cuts.tolist(), len(offsets) - 1])
        tasks = [self.submit(function, first, last, *arguments) for first, last in bounds]
        for task in tasks:
            task.result()
