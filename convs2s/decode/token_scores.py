"""What a search needs from a step's logits: each row's likeliest tokens, and its normalizer."""

from typing import Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

CACHED_NUMBERS = 2**18

Likeliest = tuple[Float[Tensor, "R N"], Int[Tensor, "R N"], Float[Tensor, "R"]]


@runtime_checkable
class LazyScores(Protocol):
    """Logits that a model has not computed yet, because beam search reads only a few of them."""

    @property
    def size(self) -> int:
        """Number of logits per row."""

    def likeliest(self, only: NDArray[np.int64], excluded: list[int], count: int, /) -> Likeliest:
        """As `find_likeliest`; `count` is at most `size`."""

    def logits(self) -> Float[Tensor, "R V"]:
        """Return all logits."""


def all_logits(scores: Float[Tensor, "R V"] | LazyScores) -> Float[Tensor, "R V"]:
    """Return all logits, computing them if necessary."""
    return scores if isinstance(scores, Tensor) else scores.logits()


def find_likeliest(
    scores: Float[Tensor, "R V"] | LazyScores, only: NDArray[np.int64], excluded: list[int], count: int
) -> Likeliest:
    """Return each row's `count` largest allowed logits, largest first, their tokens, and the normalizer.

    Args:
        scores: may be changed in place.
        only: for each row, the only allowed next token; -1: all but those excluded.
        excluded: tokens that no other row may take, at least one.
        count: at most V are returned; if fewer are allowed, the rest are -inf.
    """
    if not isinstance(scores, Tensor):
        return scores.likeliest(only, excluded, min(count, scores.size))
    normalizers = log_normalizer(scores)
    rule_out(scores, only, excluded)
    return (*scores.topk(min(count, scores.shape[1]), dim=1), normalizers)


def rule_out(logits: Float[Tensor, "R V"], only: NDArray[np.int64], excluded: list[int]) -> None:
    """Set the logits of tokens that are not allowed to -inf, in place; as `find_likeliest`."""
    fixed = np.flatnonzero(only >= 0)
    rows = torch.as_tensor(fixed, device=logits.device)
    tokens = torch.as_tensor(only[fixed], device=logits.device)
    kept = logits[rows, tokens]
    for token in excluded:
        logits[:, token] = -torch.inf
    if len(fixed):
        logits[rows] = -torch.inf
        logits[rows, tokens] = kept


def log_normalizer(logits: Float[Tensor, "R V"]) -> Float[Tensor, "R"]:
    """Return log(sum(exp(logits))) of each row."""
    if logits.is_cuda:
        return torch.logsumexp(logits, dim=1)
    # On a CPU, softmax is one fused pass and torch.logsumexp several; the largest probability gives the sum.
    # A few rows at a time stay in cache and need no new memory, which would cause page faults: 4 x as fast.
    rows = max(1, CACHED_NUMBERS // logits.shape[1])
    likeliest = [torch.softmax(part, dim=1).amax(dim=1) for part in torch.split(logits, rows)]
    return logits.amax(dim=1) - torch.cat(likeliest).log()
