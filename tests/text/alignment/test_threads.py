"""Threads divide up the work so that each item is processed exactly once."""

import numpy as np
import pytest

from convs2s.text.corpus.parallel import Threads


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
@pytest.mark.parametrize("sizes", [[], [5], [0, 0, 0], [1, 100, 1, 1], [3] * 20])
def test_each_item_is_in_exactly_one_range(threads: int, sizes: list[int]) -> None:
    """A gap would leave results unset, an overlap would write them twice at once."""
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.array(sizes, np.int64))])
    calls = [0] * len(sizes)

    def work(first: int, last: int) -> None:
        for item in range(first, last):
            calls[item] += 1

    with Threads(threads) as pool:
        pool.share(offsets, work)
    assert calls == [1] * len(sizes)


def test_an_error_in_a_thread_is_raised() -> None:
    """If it were swallowed, arrays would stay half filled."""

    def work(first: int, last: int) -> None:
        raise MemoryError("no room")

    with Threads(2) as pool, pytest.raises(MemoryError, match="no room"):
        pool.share(np.array([0, 1, 2]), work)
