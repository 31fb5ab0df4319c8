"""Several models as one: the mean of their probabilities and of their attention (§5.2, T23)."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from jaxtyping import Float, Int
from torch import Tensor

from convs2s.decode.beam_search import StepModel
from convs2s.decode.token_scores import all_logits


class SearchModel(StepModel, Protocol):
    """What translation needs from a model: the plain one, the engine's, or an ensemble of these."""

    @property
    def max_source_tokens(self) -> int | None:
        """Longest source sentence, EOS included; None if unlimited."""

    @property
    def max_target_tokens(self) -> int | None:
        """Longest target sentence, EOS included; None if unlimited."""

    def restricted(self, tokens: Int[Tensor, "N"], /) -> "SearchModel":
        """Return the same model over only these target tokens; all other weights are shared."""


@dataclass(frozen=True)
class EnsembleMemory:
    """Each member's encoded source, of the type that its `encode` returns."""

    members: tuple[Any, ...]

    def select(self, sentences: Int[Tensor, "N"]) -> "EnsembleMemory":
        """Return the memory of these sentences, in this order."""
        return EnsembleMemory(tuple(memory.select(sentences) for memory in self.members))


@dataclass(frozen=True)
class EnsembleState:
    """Each member's decoder state, of any type."""

    members: tuple[Any, ...]

    def select(self, rows: Int[Tensor, "N"]) -> "EnsembleState":
        """Return the state of these rows, in this order."""
        return EnsembleState(tuple(state.select(rows) for state in self.members))


class Ensemble:
    """Models with the same vocabularies that translate together; beam search sees a single model."""

    def __init__(self, members: Sequence[SearchModel]) -> None:
        self.members = tuple(members)

    @property
    def max_source_tokens(self) -> int | None:
        """Longest source sentence that all members accept, EOS included; None if unlimited."""
        return smallest(member.max_source_tokens for member in self.members)

    @property
    def max_target_tokens(self) -> int | None:
        """Longest target sentence that all members accept, EOS included; None if unlimited."""
        return smallest(member.max_target_tokens for member in self.members)

    def restricted(self, tokens: Int[Tensor, "N"]) -> "Ensemble":
        """Return the ensemble over only these target tokens; as `SearchModel.restricted`."""
        return Ensemble([member.restricted(tokens) for member in self.members])

    def encode(self, source: Int[Tensor, "B S"]) -> EnsembleMemory:
        """Encode source sentences with every member."""
        return EnsembleMemory(tuple(member.encode(source) for member in self.members))

    def start(self, rows: int) -> EnsembleState:
        """Return the members' states before the first step."""
        return EnsembleState(tuple(member.start(rows) for member in self.members))

    def step(
        self, tokens: Int[Tensor, "R"], memory: EnsembleMemory, state: EnsembleState
    ) -> tuple[Float[Tensor, "R V"], Float[Tensor, "R S"], EnsembleState]:
        """Advance every hypothesis by one token; the logits are logs of the mean probabilities."""
        steps = [
            member.step(tokens, part, old)
            for member, part, old in zip(self.members, memory.members, state.members, strict=True)
        ]
        logs = torch.stack([torch.log_softmax(all_logits(logits), dim=1) for logits, _, _ in steps])
        mean = torch.logsumexp(logs, dim=0) - math.log(len(steps))
        attention = torch.stack([weights for _, weights, _ in steps]).mean(dim=0)
        return mean, attention, EnsembleState(tuple(new for _, _, new in steps))


def smallest(limits: Iterable[int | None]) -> int | None:
    """Return the smallest limit; None if there is none."""
    return min((limit for limit in limits if limit is not None), default=None)
