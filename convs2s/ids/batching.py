"""Batches of sentences of similar length (T14, T15): the sentences of each update, and their order."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.integer[Any]]


class Order(NamedTuple):
    """The sentences of an epoch in the order of their lengths, cut into the batches of all workers."""

    sentences: Indices
    """Their indices, in the order of their lengths."""
    lengths: NDArray[np.unsignedinteger[Any]]
    """(sentences, 2): of source and target, in the same order."""
    spans: NDArray[np.int64]
    """(batches, 2): start and end of each batch in these, in the order of updates."""


@dataclass(frozen=True)
class Batch:
    """The sentences of one update.

    Attributes:
        whole: sentence indices of the batch, over all workers.
        parts: this process's shares, in parts that are processed one after the other (T14).
        shares: of each part, the number of its share.
        target_tokens: non-padding target tokens of the batch, over all workers (T13).
        counted: False if there is no sentence for this process, and it processes another's just to stay in
            step; its result does not count.
    """

    whole: Indices
    parts: list[Indices]
    shares: list[int]
    target_tokens: int
    counted: bool = True


@dataclass(frozen=True)
class Batching:
    """How sentences are batched; sizes are per worker.

    Attributes:
        by_sentences: whether an update takes `sentences` sentences, split into parts of `max_tokens`; if
            False, both numbers limit a batch, and each worker has one part.
        sentences: per update and worker.
        max_tokens: padded tokens, on the longer side, that a worker processes at once; when batching by
            tokens with several workers, a part may exceed this by one sentence.
        workers: shares of every batch, each for a process, or several for one.
    """

    by_sentences: bool
    sentences: int
    max_tokens: int
    workers: int = 1

    def order(
        self,
        source_lengths: Sequence[int] | Indices,
        target_lengths: Sequence[int] | Indices,
        seed: int,
        epoch: int,
    ) -> Order:
        """Return the batches of an epoch, determined by the seed and the epoch.

        Sentences are sorted by source length, then target length, then randomly, and cut into batches, which
        are shuffled. Two workers with half the batch size see exactly the batches of a single worker.
        """
        # Lengths of 16 bits are sorted by their digits, in linear time.
        narrow = np.min_scalar_type(max(np.max(source_lengths), np.max(target_lengths), 256))
        sides = [np.asarray(side, narrow) for side in (source_lengths, target_lengths)]
        order = np.lexsort(sides[::-1]).astype(np.min_scalar_type(len(sides[0])))
        lengths = np.stack([side[order] for side in sides], axis=1)
        random = np.random.default_rng([seed, epoch])
        numbers = random.random(len(order))
        changes = np.flatnonzero((lengths[1:] != lengths[:-1]).any(axis=1)) + 1
        for start, end in itertools.pairwise([0, *changes.tolist(), len(order)]):
            equal = order[start:end]  # sentences of equal lengths
            order[start:end] = equal[numbers[equal].argsort(kind="stable")]
        spans = np.array(list(self._cut(lengths)))
        return Order(order, lengths, spans[random.permutation(len(spans))])

    def share(self, order: Order, rank: int, first: int = 0, processes: int | None = None) -> Iterator[Batch]:
        """Yield the batches of a process, from number `first`, counted from 0.

        Args:
            processes: how many take the shares in turn; None: one for each share.
        """
        shares = range(rank, self.workers, processes or self.workers)
        for start, end in order.spans[first:]:
            yield self._share(order.sentences[start:end], order.lengths[start:end], shares)

    def _cut(self, lengths: Indices) -> Iterator[tuple[int, int]]:
        """Cut sorted sentences into the batches of all workers together."""
        sentences = self.sentences * self.workers
        if self.by_sentences:
            for start in range(0, len(lengths), sentences):
                yield start, min(start + sentences, len(lengths))
        else:
            yield from fit(lengths, self.max_tokens * self.workers, sentences)

    def _share(self, batch: Indices, lengths: Indices, shares: Sequence[int]) -> Batch:
        parts: list[Indices] = []
        numbers: list[int] = []
        for share in (share for share in shares if share < len(batch)):
            # Every W-th sentence: this spreads lengths, and so work, evenly over the shares.
            own = slice(share, None, self.workers)
            # When batching by tokens, a batch fits the workers' combined limit, but a share may exceed its
            # own by one sentence: no worker should make a second pass for that while the others wait.
            runs = fit(lengths[own], self.max_tokens, len(batch)) if self.by_sentences else [(0, len(batch))]
            found = [batch[own][start:end] for start, end in runs]
            parts += found
            numbers += [share] * len(found)
        tokens = int(lengths[:, 1].sum())
        if not parts:
            return Batch(batch, [batch[:1]], [shares[0]], tokens, counted=False)
        return Batch(batch, parts, numbers, tokens)


def fit(lengths: Indices, max_tokens: int, max_sentences: int) -> Iterator[tuple[int, int]]:
    """Cut sentences, in order, into runs of at most `max_tokens` padded tokens on either side.

    A sentence that exceeds the limit by itself gets its own run.

    Args:
        lengths: (sentences, 2), of source and target, at least 1.
    """
    longest = lengths.max(axis=1)
    start = 0
    while start < len(longest):
        # The first sentence alone limits how many fit.
        most = min(max_tokens // int(longest[start]), max_sentences)
        widest = np.maximum.accumulate(longest[start : start + most])
        # A run's padded size is its number of sentences times the length of the longest.
        padded = widest * np.arange(1, len(widest) + 1)
        end = start + max(1, int(padded.searchsorted(max_tokens, side="right")))
        yield start, end
        start = end


def pad(
    sentences: Sequence[NDArray[np.integer]], padding_id: int, multiple: int = 1, limit: int | None = None
) -> NDArray[np.int64]:
    """Return sentences as rows of one array, padded at their ends.

    Args:
        multiple: the array's width is a multiple of it.
        limit: the width at most, unless a sentence is longer; None for any.
    """
    longest = max(len(sentence) for sentence in sentences)
    width = longest + -longest % multiple
    if limit is not None:
        width = max(longest, min(width, limit))
    rows = np.full((len(sentences), width), padding_id, dtype=np.int64)
    for row, sentence in zip(rows, sentences, strict=True):
        row[: len(sentence)] = sentence
    return rows
