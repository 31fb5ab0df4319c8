"""What beam search needs from a step's logits: each row's normalizer and its likeliest tokens."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from convs2s.text.vocabulary.vocabulary import EOS, PAD

CACHED_NUMBERS = 2**18
GROUP = 12
"""Tokens per group."""
FEWEST_GROUPS = 16
"""Groups per token to find, at or above which grouping pays off."""


@runtime_checkable
class LazyScores(Protocol):
    """Logits that a model has not computed yet, because beam search reads only a few of them."""

    @property
    def size(self) -> int:
        """Number of logits per row."""

    def likeliest(
        self, only: NDArray[np.int64], excluded: NDArray[np.int64], count: int, /
    ) -> tuple[Float[Tensor, "R N"], Int[Tensor, "R N"], Float[Tensor, "R"]]:
        """Return each row's `count` largest allowed logits, largest first, their tokens, and the normalizer.

        Args:
            only: for each row, the only allowed next token; -1: all but those excluded.
            excluded: tokens that no other row may take, at least one.
            count: if fewer are allowed, the rest are -inf.
        """

    def logits(self) -> Float[Tensor, "R V"]:
        """Return all logits."""


def all_logits(scores: Float[Tensor, "R V"] | LazyScores) -> Float[Tensor, "R V"]:
    """Return all logits, computing them if necessary."""
    return scores if isinstance(scores, Tensor) else scores.logits()


def log_normalizer(logits: Float[Tensor, "R V"]) -> Float[Tensor, "R"]:
    """Return log(sum(exp(logits))) of each row."""
    if logits.is_cuda:
        return torch.logsumexp(logits, dim=1)
    # On a CPU, softmax is one fused pass and torch.logsumexp several; the largest probability gives the sum.
    # A few rows at a time stay in cache and need no new memory, which would cause page faults: 4 x as fast.
    rows = max(1, CACHED_NUMBERS // logits.shape[1])
    likeliest = [torch.softmax(part, dim=1).amax(dim=1) for part in torch.split(logits, rows)]
    return logits.amax(dim=1) - torch.cat(likeliest).log()


def top_tokens(logits: Float[Tensor, "R V"], count: int) -> tuple[Float[Tensor, "R N"], Int[Tensor, "R N"]]:
    """Return each row's `count` largest logits, largest first, and their tokens; as `torch.topk`.

    On a CPU, topk looks at one number at a time, but the maxima of groups take one fast pass. The largest
    numbers are in the groups with the largest maxima, so only those need to be sorted.
    """
    width = logits.shape[1] // GROUP
    if logits.is_cuda or width < FEWEST_GROUPS * count:
        values, tokens = logits.topk(count, dim=1)
        return values, tokens
    # Group i has the tokens i, i + width, i + 2 * width, ...; leftover tokens are always candidates.
    groups = logits[:, : GROUP * width].unflatten(1, (GROUP, width))
    best = groups.amax(dim=1).topk(count, dim=1).indices  # (R, N)
    members = best[:, None, :] + width * torch.arange(GROUP, device=logits.device)[:, None]
    rest = torch.arange(GROUP * width, logits.shape[1], device=logits.device).expand(len(logits), -1)
    tokens = torch.cat([members.flatten(1), rest], dim=1)
    values, places = logits.gather(1, tokens).topk(count, dim=1)
    return values, tokens.gather(1, places)


def rule_out(
    logits: Float[Tensor, "B H V"],
    step: int,
    min_length: int,
    forced: NDArray[np.bool_],
    given: tuple[list[int], list[int]],
) -> None:
    """Rule out, in place, padding, EOS below the minimum length, and all but forced and given tokens."""
    logits[..., PAD] = -torch.inf
    if step < min_length:
        early = torch.from_numpy(np.flatnonzero(~forced)).to(logits.device)
        logits[early, :, EOS] = -torch.inf
    late = np.flatnonzero(forced).tolist()
    keep_only(logits, late, [EOS] * len(late))
    keep_only(logits, *given)


def keep_only(logits: Float[Tensor, "B H V"], rows: Sequence[int], tokens: Sequence[int]) -> None:
    """Rule out, in place, all tokens but one in each of the given rows of the batch."""
    if not rows:
        return
    index = torch.tensor(rows, device=logits.device)
    columns = torch.tensor(tokens, device=logits.device)
    kept = logits[index, :, columns]  # (N, H)
    logits[index] = -torch.inf
    logits[index, :, columns] = kept
