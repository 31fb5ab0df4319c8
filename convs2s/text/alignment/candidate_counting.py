"""Links of an aligned corpus -> alignment candidates (§5.4)."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from convs2s.text.alignment.candidates import Candidates
from convs2s.text.corpus.flat_ids import FlatIds

HELD_LINKS = 1 << 22
"""Links buffered before they are counted, 8 bytes each."""


def build_candidates(
    source: FlatIds, target: FlatIds, links: Iterable[Sequence[tuple[int, int]]], most: int
) -> Candidates:
    """Return up to `most` candidates of each source token; ties are in order of ids.

    Args:
        source: the source side of the corpus.
        target: the target side.
        links: for each sentence pair, its (source, target) positions from 0.
        most: candidates per source token.
    """
    pairs, counts = count_links(source, target, links)
    sources, targets = pairs >> 32, pairs & 0xFFFFFFFF
    order = np.lexsort((targets, -counts, sources))
    rows = np.bincount(sources, minlength=1 if len(sources) else 0)
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(rows, dtype=np.int64)])
    return Candidates(offsets, targets[order].astype(np.int32)).top(most)


def count_links(
    source: FlatIds, target: FlatIds, links: Iterable[Sequence[tuple[int, int]]]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the distinct pairs of linked tokens, source * 2^32 + target, and how often each is linked."""
    pairs, counts = np.zeros(0, np.int64), np.zeros(0, np.int64)
    for found in link_blocks(source, target, links):
        every = np.concatenate([pairs, found])
        weights = np.concatenate([counts, np.ones(len(found), np.int64)])
        pairs, places = np.unique(every, return_inverse=True)
        counts = np.bincount(places, weights).astype(np.int64)  # exact: float64 counts to 2^53
    return pairs, counts


def link_blocks(
    source: FlatIds, target: FlatIds, links: Iterable[Sequence[tuple[int, int]]]
) -> Iterator[NDArray[np.int64]]:
    """Yield the linked pairs of tokens as numbers, in blocks of about HELD_LINKS."""
    waiting, held = list[NDArray[np.int64]](), 0
    for number, pair_links in enumerate(links):
        if pair_links:
            i, j = np.array(pair_links).T
            waiting.append((source[number][i].astype(np.int64) << 32) | target[number][j])
            held += len(i)
        if held >= HELD_LINKS:
            yield np.concatenate(waiting)
            waiting, held = [], 0
    if waiting:
        yield np.concatenate(waiting)
