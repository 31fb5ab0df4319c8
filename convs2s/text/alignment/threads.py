"""A thread pool that divides up compiled work."""

import itertools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray


class Threads(ThreadPoolExecutor):
    """A fixed number of threads; independent tasks give the same results with any number of threads."""

    def __init__(self, count: int) -> None:
        super().__init__(count)
        self.count = count

    def share(self, offsets: NDArray[np.int64], function: Callable[..., None], *arguments: Any) -> None:
        """Call function(first, last, *arguments) for ranges that together cover all items, and wait.

        Args:
            offsets: where each item's work begins, then the end; ranges have about equal amounts of work.
            function: compiled, so that threads run in parallel.
            arguments: passed on.
        """
        cuts = np.searchsorted(offsets, np.linspace(0, offsets[-1], self.count + 1)[1:-1])
        bounds = itertools.pairwise([0, *cuts.tolist(), len(offsets) - 1])
        tasks = [self.submit(function, first, last, *arguments) for first, last in bounds]
        for task in tasks:
            task.result()
