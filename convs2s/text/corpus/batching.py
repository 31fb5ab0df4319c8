"""Batches of sentences of similar length (T14, T15): the sentences of each update, and their order."""

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
        counted: False if the batch has fewer sentences than there are workers, and this worker processes
            another's share just to stay in step; its result does not count.
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
        by_sentences: whether an update takes `sentences` sentences, split into parts of `max_tokens`; if
            False, both numbers limit a batch, and each worker has one part.
        sentences: per update and worker.
        max_tokens: padded tokens, on the longer side, that a worker processes at once; when batching by
            tokens with several workers, a part may exceed this by one sentence.
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
        """Return this worker's batches of an epoch, in order; determined by the seed and the epoch.

        Sentences are sorted by source length, then target length, then randomly, and cut into batches, which
        are shuffled. Two workers with half the batch size see exactly the batches of a single worker.
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
        # When batching by tokens, a batch fits the workers' combined limit, but a share may exceed its own by
        # one sentence: no worker should make a second pass for that while the others wait.
        parts = list(fit(own, lengths, self.max_tokens, len(batch))) if self.by_sentences else [own]
        return Batch(batch, parts, int(lengths[batch, 1].sum()), len(batch), counted)


def fit(order: Indices, lengths: NDArray[np.int64], max_tokens: int, max_sentences: int) -> Iterator[Indices]:
    """Cut sentences, in order, into runs of at most `max_tokens` padded tokens on either side.

    A sentence that exceeds the limit by itself gets its own run.
    """
    # A run's padded size is its number of sentences times the length of the longest.
    longest = lengths[order].max(axis=1).tolist()
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
