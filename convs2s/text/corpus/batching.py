"""Batches of sentences of similar length (T14, T15): which sentences each update takes, in which order."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.int64]


@dataclass(frozen=True)
class Batch:
    """The sentences of one update.

    Attributes:
        whole: sentence indices of the batch, over all workers.
        parts: this worker's share, in parts that are processed one after the other (T14).
        target_tokens: non-padding target tokens of the batch, over all workers (T13).
        sentences: number of sentences in the batch, over all workers.
        counted: False if the parts belong to another worker, because the batch has fewer sentences than
            there are workers; they are processed to stay in step, and do not count.
    """

    whole: Indices
    parts: list[Indices]
    target_tokens: int
    sentences: int
    counted: bool = True


@dataclass(frozen=True)
class Batching:
    """How sentences are batched; sizes are per worker.

    Attributes:
        by_sentences: whether an update takes `sentences`, split at `max_tokens`; else one part per worker.
        sentences: per update and worker.
        max_tokens: padded tokens, on the side that has more, that a worker processes at once; by tokens and
            with several workers it may be one sentence more.
        workers: processes that share every batch.
    """

    by_sentences: bool
    sentences: int
    max_tokens: int
    workers: int = 1

    def epoch(
        self,
        source_lengths: Sequence[int] | Indices,
        target_lengths: Sequence[int] | Indices,
        seed: int,
        epoch: int,
        rank: int = 0,
    ) -> list[Batch]:
        """Return this worker's batches of an epoch, in order; the same for the same seed and epoch.

        Sentences are sorted by source length, then target length, then randomly, and cut into batches, which
        are shuffled. Two workers with half the batch size see exactly the batches of one.
        """
        lengths = np.stack([np.asarray(source_lengths), np.asarray(target_lengths)], axis=1)
        random = np.random.default_rng([seed, epoch])
        order = np.lexsort((random.random(len(lengths)), lengths[:, 1], lengths[:, 0]))
        batches = list(self._cut(order, lengths))
        return [self._share(batches[i], lengths, rank) for i in random.permutation(len(batches))]

    def _cut(self, order: Indices, lengths: NDArray[np.int64]) -> Iterator[Indices]:
        """Cut sorted sentences into the batches of all workers together."""
        sentences = self.sentences * self.workers
        if self.by_sentences:
            yield from (order[i : i + sentences] for i in range(0, len(order), sentences))
        else:
            yield from fit(order, lengths, self.max_tokens * self.workers, sentences)

    def _share(self, batch: Indices, lengths: NDArray[np.int64], rank: int) -> Batch:
        # Every W-th sentence: this spreads lengths, and so work, evenly over the workers.
        share = batch[rank :: self.workers]
        counted = len(share) > 0
        own = share if counted else batch[:1]
        # By tokens, a batch fits all workers' limits together, but a share may be one sentence above its own:
        # nobody should make a second pass for it while the others wait.
        parts = list(fit(own, lengths, self.max_tokens, len(batch))) if self.by_sentences else [own]
        return Batch(batch, parts, int(lengths[batch, 1].sum()), len(batch), counted)


def fit(order: Indices, lengths: NDArray[np.int64], max_tokens: int, max_sentences: int) -> Iterator[Indices]:
    """Cut sentences, in order, into runs of at most `max_tokens` padded tokens on either side.

    A sentence that alone exceeds the limit is a run of its own.
    """
    longest = (
        lengths[order].max(axis=1).tolist()
    )  # a run's padded size is its widest sentence's times its count
    start, widest = 0, 0
    for i, length in enumerate(longest):
        widest = max(widest, length)
        if i > start and (widest * (i + 1 - start) > max_tokens or i - start == max_sentences):
            yield order[start:i]
            start, widest = i, length
    if start < len(longest):
        yield order[start:]


def pad(sentences: Sequence[NDArray[np.integer]], padding_id: int) -> NDArray[np.int64]:
    """Return sentences as rows of one array, padded at their ends."""
    width = max(len(sentence) for sentence in sentences)
    rows = np.full((len(sentences), width), padding_id, dtype=np.int64)
    for row, sentence in zip(rows, sentences, strict=True):
        row[: len(sentence)] = sentence
    return rows
