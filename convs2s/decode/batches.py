"""Sentences to search -> parts that fit the position table (T18) -> batches of similar length."""

import itertools
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import torch
from jaxtyping import Int64
from torch import Tensor

from convs2s.base.messages import is_out_of_memory
from convs2s.ids.vocabulary import PAD
from convs2s.text.words.characters import SENTENCE_ENDS

Result = TypeVar("Result")
CLAUSE_END = (",", ";", ":", "，", "；", "：", "—", "–")
# Limit on padded source tokens per batch, however long its sentences, to bound memory.
BATCH_TOKENS = 16_384
GPU_BATCH_TOKENS = 2 * BATCH_TOKENS
GPU_SENTENCES = 8
"""Times as many sentences on a GPU: a step takes it about as long, so the whole takes fewer steps."""
SCORE_BYTES, MEMBER_BYTES = 8, 4
"""Memory of a step for each hypothesis and token: of the search, and of each model's scores.

Of an ensemble that is what a step takes; of a single model it is half as much again, as a margin.
"""


def gpu_batch_sentences(
    batch_sentences: int, beam_size: int, entries: int, free_memory: int, members: int = 1
) -> int:
    """Return how many sentences a GPU translates at once; their scores take at most a quarter of free memory.

    Args:
        batch_sentences: the least.
        entries: target tokens with a score.
        free_memory: of the GPU, in bytes.
        members: models that translate together.
    """
    score = SCORE_BYTES + MEMBER_BYTES * members
    fit = free_memory // 4 // (beam_size * entries * score)
    return max(batch_sentences, min(GPU_SENTENCES * batch_sentences, fit))


def free_gpu_memory(device: torch.device) -> int:
    """Return the bytes that this process can still take on a GPU, with those that PyTorch keeps for it."""
    free, _ = torch.cuda.mem_get_info(device)
    return free + torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)


class FittingSentences:
    """How many sentences a GPU's memory holds, found by searching fewer at a time once it has run out.

    That changes scores by rounding at most, as a GPU may sum products of other sizes in another order, if
    all that depends on a batch is chosen for the whole batch before.

    Attributes:
        most: sentences that may fit; None while memory has not run out.
    """

    def __init__(self) -> None:
        self.most: int | None = None

    def search(
        self, search_part: Callable[[slice], list[Result]], rows: int, device: torch.device
    ) -> list[Result]:
        """Return the results of all rows of a batch, in as few parts as fit.

        Raises:
            RuntimeError: PyTorch's, if not even one sentence fits.
        """
        results = list[Result]()
        while len(results) < rows:
            count = min(rows - len(results), self.most or rows)
            try:
                results += search_part(slice(len(results), len(results) + count))
                continue
            except RuntimeError as error:
                if count == 1 or not is_out_of_memory(error):
                    raise
            # Not in the handler, where the error holds tensors. cuBLAS cannot take what PyTorch keeps.
            torch.cuda.empty_cache()
            self._halve(count, device)
        return results

    def _halve(self, count: int, device: torch.device) -> None:
        """Search at most half as many sentences from now on; warn the first time."""
        if self.most is None:
            warnings.warn(
                f"The memory of {device} does not hold the search of {count:,} sentences. Smaller parts are "
                "searched from now on, which takes longer and changes scores by rounding at most. Lower "
                "translate.batch_sentences (--batch-sentences) or the beam size, or end other programs that "
                "use this memory.",
                stacklevel=2,
            )
        self.most = count // 2


def batches(
    lengths: Sequence[int], batch_sentences: int, batch_tokens: int = BATCH_TOKENS
) -> Iterator[list[int]]:
    """Yield the indices of sentences with these lengths, longest first, in batches of similar length."""
    order = sorted(range(len(lengths)), key=lambda i: -lengths[i])
    start = 0
    while start < len(order):
        fit = max(1, min(batch_sentences, batch_tokens // lengths[order[start]]))
        yield order[start : start + fit]
        start += fit


def pad_ids(rows: Sequence[Sequence[int]]) -> Int64[Tensor, "B S"]:
    """Return rows of ids as one tensor, with short rows padded at the end."""
    width = max(map(len, rows))
    return torch.tensor([[*row, *itertools.repeat(PAD, width - len(row))] for row in rows])


def cut(words: Sequence[str], word_of_piece: Sequence[int], limit: int) -> list[range]:
    """Return ranges of pieces that cover a sentence, none longer than `limit`.

    A part ends after the last sentence end in the second half of what fits, else after the last clause end,
    else after the last word end, else anywhere.

    Args:
        word_of_piece: for each piece, the index of its word.
        limit: most pieces in a part, at least 1.
    """
    parts = []
    start = 0
    pieces = len(word_of_piece)
    while pieces - start > limit:
        ends = range(start + limit, start + max(limit // 2, 1) - 1, -1)  # the longest first
        end = min(ends, key=lambda end: breach(words, word_of_piece, end))
        parts.append(range(start, end))
        start = end
    return [*parts, range(start, pieces)]


def breach(words: Sequence[str], word_of_piece: Sequence[int], end: int) -> int:
    """Return how bad it is to cut before piece `end`: 0 between sentences, to 3 within a word."""
    last = word_of_piece[end - 1]
    if word_of_piece[end] == last:
        return 3
    if words[last].endswith(SENTENCE_ENDS):
        return 0
    return 1 if words[last].endswith(CLAUSE_END) else 2
