"""Several models as one: the mean of their probabilities and of their attention (§5.2, T23)."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from jaxtyping import Float, Int
from torch import Tensor

from convs2s.model.decoder import DecoderState
from convs2s.model.multistep_attention import Memory
from convs2s.model.seq2seq import Seq2Seq


@dataclass(frozen=True)
class EnsembleMemory:
    """What each member's decoder sees of the source."""

    members: tuple[Memory, ...]

    def select(self, sentences: Int[Tensor, "N"]) -> "EnsembleMemory":
        """Return the memory of these sentences, in this order."""
        return EnsembleMemory(tuple(memory.select(sentences) for memory in self.members))


@dataclass(frozen=True)
class EnsembleState:
    """What each member's decoder remembers."""

    members: tuple[DecoderState, ...]

    def select(self, rows: Int[Tensor, "N"]) -> "EnsembleState":
        """Return the state of these rows, in this order."""
        return EnsembleState(tuple(state.select(rows) for state in self.members))


class Ensemble:
    """Models that translate together; beam search takes it for one model.

    Raises:
        ValueError: if members differ in the size of a vocabulary.
    """

    def __init__(self, members: Sequence[Seq2Seq]) -> None:
        for side, size in (("source", source_size), ("target", target_size)):
            sizes = [size(member) for member in members]
            if len(set(sizes)) > 1:
                raise ValueError(
                    f"The {side} vocabularies of an ensemble's members have {', '.join(map(str, sizes))} "
                    "types; wanted one and the same. Train the members on the same data/vocabulary."
                )
        self.members = tuple(members)

    @property
    def max_source_tokens(self) -> int | None:
        """Longest source sentence that all members take, its end mark counted; None for any."""
        return smallest(member.max_source_tokens for member in self.members)

    @property
    def max_target_tokens(self) -> int | None:
        """Longest target sentence that all members take, its end mark counted; None for any."""
        return smallest(member.max_target_tokens for member in self.members)

    def restricted(self, types: Int[Tensor, "N"]) -> "Ensemble":
        """Return the ensemble for these target types only; as `Seq2Seq.restricted`."""
        return Ensemble([member.restricted(types) for member in self.members])

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
        logs = torch.stack([torch.log_softmax(logits, dim=1) for logits, _, _ in steps])
        mean = torch.logsumexp(logs, dim=0) - math.log(len(steps))
        attention = torch.stack([weights for _, weights, _ in steps]).mean(dim=0)
        return mean, attention, EnsembleState(tuple(new for _, _, new in steps))


def smallest(limits: Iterable[int | None]) -> int | None:
    """Return the smallest limit; None if there is none."""
    return min((limit for limit in limits if limit is not None), default=None)


def source_size(model: Seq2Seq) -> int:
    """Return the source types of a model, special ones included."""
    return model.source_embedding.words.num_embeddings


def target_size(model: Seq2Seq) -> int:
    """Return the target types of a model, special ones included."""
    return model.output_layer.out_features


def models_of(member: str, seeds: Sequence[int], trained: Path) -> list[Path]:
    """Return the folders of the models that translate together: trained/SEED/model.

    Models of other seeds in `trained` take no part: with seeds 1 to 10 trained, `train.seeds` of 1 to 8 and
    then of all ten give both ensembles of Table 2 without further training (T24).

    Args:
        member: a seed, or `ensemble` for all of `seeds`, which needs two seeds at least: none with one.
    """
    members = [int(member)] if member != "ensemble" else seeds if len(seeds) > 1 else []
    return [trained / str(seed) / "model" for seed in members]
