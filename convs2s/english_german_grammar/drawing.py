"""Drawing from weighted tables using random bits only: the same on every machine and Python version."""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

T = TypeVar("T")

Bits = Callable[[int], int]
"""The method `getrandbits` of a seeded generator: its values are part of Python's stable interface."""

TABLE_BITS = 13
TABLE_SIZE = 2**TABLE_BITS


def listed(text: str) -> list[str]:
    """Return the words of a table written as one string."""
    return text.split()


def spread(weighted: Iterable[tuple[T, int]]) -> tuple[T, ...]:
    """Return a table of `TABLE_SIZE` entries in which each item occurs in proportion to its weight.

    Only integers are used, so rounding cannot differ between machines. An item whose weight is below about
    1/`TABLE_SIZE` of the sum may be missing.
    """
    pairs = list(weighted)
    total = sum(weight for _, weight in pairs)
    table: list[T] = []
    reached = 0
    for item, weight in pairs:
        reached += weight
        table += [item] * (reached * TABLE_SIZE // total - len(table))
    return tuple(table)


def zipf(items: Sequence[T], offset: int = 4) -> tuple[T, ...]:
    """Return a table in which the item of rank r = 0, 1, ... has a share proportional to 1/(r + offset)."""
    return spread((item, 10**9 // (rank + offset)) for rank, item in enumerate(items))


def draw(bits: Bits, table: Sequence[T]) -> T:
    """Return an entry of a table made by `spread` or `zipf`."""
    return table[bits(TABLE_BITS)]


def chance(bits: Bits, percent: int) -> bool:
    """Return True in `percent` of 100 cases."""
    return bits(16) * 100 < percent * 65536


def below(bits: Bits, limit: int) -> int:
    """Return a number from 0 to limit - 1; the bias is under limit / 2^32."""
    return bits(32) * limit >> 32
