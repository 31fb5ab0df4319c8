"""What a search needs from a step's logits: the best continuations of each sentence's hypotheses."""

from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float, Float32, Int64
from numpy.typing import NDArray
from torch import Tensor

from convs2s.search.copies import copy_to_device

CACHED_NUMBERS = 2**18


class Allowed(NamedTuple):
    """The tokens that rows may take.

    Attributes:
        only: (R,), the only allowed token of each row; negative: all but those excluded.
        excluded: tokens that no other row may take, at least one.
    """

    only: NDArray[np.int64]
    excluded: list[int]


class Continuations(NamedTuple):
    """Hypotheses and their next tokens, as many for each sentence; arrays, or tensors on a device.

    Attributes:
        totals: (B, M), their log-likelihoods.
        rows: (B, M), the rows that they extend.
        tokens: (B, M), the tokens that they add.
    """

    totals: Any
    rows: Any
    tokens: Any

    def select(self, sentences: Any) -> "Continuations":
        """Return those of these sentences, in this order."""
        return Continuations(*(part[sentences] for part in self))


@runtime_checkable
class LazyScores(Protocol):
    """Logits that a model has not computed yet, because beam search reads only a few of them."""

    def best(
        self, totals: Float32[np.ndarray, "B H"], only: NDArray[np.int64], excluded: list[int], count: int, /
    ) -> tuple[Float32[np.ndarray, "B M"], Int64[np.ndarray, "B M"], Int64[np.ndarray, "B M"]]:
        """Return the three of `Continuations` for tokens that are `Allowed`, as arrays."""

    def logits(self) -> Float[Tensor, "R V"]:
        """Return all logits."""


def all_logits(scores: Float[Tensor, "R V"] | LazyScores) -> Float[Tensor, "R V"]:
    """Return all logits, computing them if necessary."""
    return scores if isinstance(scores, Tensor) else scores.logits()


def find_best(
    scores: Float[Tensor, "R V"] | LazyScores, totals: Any, allowed: Allowed, count: int
) -> Continuations:
    """Return the best continuations of each sentence's hypotheses, best first.

    Equal ones are ordered by row, then by the rank of their token; NaN comes before all others.

    Args:
        scores: may be changed in place.
        totals: (B, H), log-likelihood of each hypothesis so far.
        count: at most V of each row are considered; if fewer are allowed, the rest are -inf.

    Returns:
        `count` continuations, or as many as there are: tensors, or arrays if both arguments are on the host
        anyway, that is, `scores` are lazy and `totals` an array.
    """
    if not isinstance(scores, Tensor):
        found = scores.best(np.asarray(totals), *allowed, count)
        return Continuations(*(found if isinstance(totals, np.ndarray) else map(torch.from_numpy, found)))
    normalizers = log_normalizer(scores)
    rule_out(scores, allowed)
    values, ids = scores.topk(min(count, scores.shape[1]), dim=1)
    sentences, beams = totals.shape
    # log p = logit - normalizer: a full log-softmax would write V numbers per row to read these few.
    offset = torch.as_tensor(totals, device=scores.device) - normalizers.view(sentences, beams)
    sums = (values.view(sentences, beams, -1) + offset[:, :, None]).flatten(1)
    sums, order = sums.sort(dim=1, descending=True, stable=True)
    sums, order = sums[:, :count], order[:, :count]
    first = torch.arange(0, len(scores), beams, device=scores.device)[:, None]
    rows = first + order.div(values.shape[1], rounding_mode="floor")
    return Continuations(sums, rows, ids.view(sentences, -1).gather(1, order))


def rule_out(logits: Float[Tensor, "R V"], allowed: Allowed) -> None:
    """Set the logits of tokens that are not allowed to -inf, in place."""
    fixed = np.flatnonzero(allowed.only >= 0)
    if len(fixed):
        rows = copy_to_device(fixed, logits.device)
        tokens = copy_to_device(allowed.only[fixed], logits.device)
        kept = logits[rows, tokens]
        logits[rows] = -torch.inf
    for token in allowed.excluded:
        logits[:, token].fill_(-torch.inf)
    if len(fixed):
        logits[rows, tokens] = kept


def log_normalizer(logits: Float[Tensor, "R V"]) -> Float[Tensor, "R"]:
    """Return log(sum(exp(logits))) of each row.

    On a GPU this takes several passes over the logits, and topk further ones, where one kernel could find
    both at once. PyTorch has none, and one of our own would be a second text of the rule that no GPU has run.
    """
    if logits.is_cuda:
        return torch.logsumexp(logits, dim=1)
    # On a CPU, softmax is one fused pass and torch.logsumexp several; the largest probability gives the sum.
    # A few rows at a time stay in cache and need no new memory, which would cause page faults: 4 x as fast.
    rows = max(1, CACHED_NUMBERS // logits.shape[1])
    likeliest = [torch.softmax(part, dim=1).amax(dim=1) for part in torch.split(logits, rows)]
    return logits.amax(dim=1) - torch.cat(likeliest).log()
