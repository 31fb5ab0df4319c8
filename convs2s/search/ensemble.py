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
        logs: Tensor | None = None
        attention, states = [], []
        for number, member in enumerate(self.members):
            scores, weights, following = member.step(tokens, memory.members[number], state.members[number])
            logits = all_logits(scores)
            if logs is None:
                logs = logits.new_empty(len(self.members), *logits.shape)
            torch.log_softmax(logits, dim=1, out=logs[number])
            attention.append(weights)
            states.append(following)
            del scores, logits  # a GPU's memory need not hold those of two members
        assert logs is not None
        return log_mean(logs), torch.stack(attention).mean(dim=0), OfMembers(tuple(states))


def log_mean(logs: Float[Tensor, "M R V"]) -> Float[Tensor, "R V"]:
    """Return the logs of the members' mean probabilities; their logs are overwritten.

    That is torch.logsumexp, to the last bit, without its copies, each of which is as large as the logs. A sum
    that is added to member by member (torch.logaddexp) would need no logs of all members, so that a score
    would take 12 bytes, however many they are. But it rounds differently, and so would change scores of
    ensembles on all machines, or need a second formula for a GPU that no GPU has run.
    """
    largest = logs.amax(dim=0).clamp_(min=torch.finfo(logs.dtype).min)  # not -inf, from which -inf is NaN
    return logs.sub_(largest).exp_().sum(dim=0).log_().add_(largest).sub_(math.log(len(logs)))


def lowest_limit(limits: Iterable[int | None]) -> int | None:
    """Return the lowest limit; None means no limit."""
    return min((limit for limit in limits if limit is not None), default=None)
