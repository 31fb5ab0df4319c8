"""Several models as one: the mean of their probabilities and of their attention (§5.2, T23)."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from convs2s.search.search import SearchModel
from convs2s.search.token_scores import all_logits


@dataclass(frozen=True)
class OfMembers:
    """Each member's memory or state, of any type."""

    members: tuple[Any, ...]

    def select(self, rows: Int[Tensor, "N"]) -> "OfMembers":
        """Return these rows, in this order."""
        return OfMembers(tuple(member.select(rows) for member in self.members))


class Ensemble:
    """Models with the same vocabularies that translate together; beam search sees a single model."""

    def __init__(self, members: Sequence[SearchModel]) -> None:
        self.members = tuple(members)
        self.max_source_tokens = lowest_limit(member.max_source_tokens for member in members)
        self.max_target_tokens = lowest_limit(member.max_target_tokens for member in members)

    def restrict(self, tokens: Int[Tensor, "N"]) -> "Ensemble":
        """Return the ensemble over only these target tokens; as `SearchModel.restrict`."""
        return Ensemble([member.restrict(tokens) for member in self.members])

    def encode(self, source: Int[Tensor, "B S"]) -> OfMembers:
        """Encode source sentences with every member."""
        return OfMembers(tuple(member.encode(source) for member in self.members))

    def start(self, rows: int) -> OfMembers:
        """Return the members' states before the first step."""
        return OfMembers(tuple(member.start(rows) for member in self.members))

    def step(
        self, tokens: Int[Tensor, "R"], memory: OfMembers, state: OfMembers
    ) -> tuple[Float[Tensor, "R V"], Float[Tensor, "R S"], OfMembers]:
        """Advance every hypothesis by one token; the logits are logs of the mean probabilities."""
        steps = [
            member.step(tokens, part, old)
            for member, part, old in zip(self.members, memory.members, state.members, strict=True)
        ]
        logs = torch.stack([torch.log_softmax(all_logits(logits), dim=1) for logits, _, _ in steps])
        mean = torch.logsumexp(logs, dim=0) - math.log(len(steps))
        attention = torch.stack([weights for _, weights, _ in steps]).mean(dim=0)
        return mean, attention, OfMembers(tuple(new for _, _, new in steps))


def lowest_limit(limits: Iterable[int | None]) -> int | None:
    """Return the lowest limit; None means no limit."""
    return min((limit for limit in limits if limit is not None), default=None)
