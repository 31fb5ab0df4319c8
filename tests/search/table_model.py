"""A model whose scores come from a table: small enough to search by hand."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Held:
    """Rows as memory (source ids) or as state (all tokens so far)."""

    rows: Tensor

    def select(self, rows: Tensor) -> "Held":
        return Held(self.rows[rows])


@dataclass(frozen=True)
class TableModel:
    """Scores of the next token depend on the first source token and on *all* tokens so far.

    Attributes:
        table: (source tokens, contexts, V) logits; the context is the sum of the tokens so far, modulo the
            number of contexts, so a wrongly reordered state gives different scores.
    """

    table: Tensor
    max_source_tokens: int | None = None
    max_target_tokens: int | None = None

    def restrict(self, tokens: Tensor) -> "TableModel":
        raise NotImplementedError

    def encode(self, source: Tensor) -> Held:
        return Held(source)

    def start(self, rows: int) -> Held:
        return Held(torch.zeros(rows, 0, dtype=torch.int64))

    def step(self, tokens: Tensor, memory: Held, state: Held) -> tuple[Tensor, Tensor, Held]:
        history = torch.cat([state.rows, tokens[:, None]], dim=1)
        beams = len(tokens) // len(memory.rows)
        source = memory.rows.repeat_interleave(beams, dim=0)
        logits = self.table[source[:, 0], history.sum(dim=1) % self.table.shape[1]].clone()
        return logits, self.attention(source, history.shape[1]), Held(history)

    @staticmethod
    def attention(source: Tensor, step: int) -> Tensor:
        """Attend mostly to source position step - 1, modulo the sentence's length with EOS."""
        lengths = (source != 0).sum(dim=1)
        weights = (source != 0).float() * 0.5 / lengths[:, None]
        weights[torch.arange(len(source)), (step - 1) % lengths] += 0.5
        return weights


def random_table(sources: int, contexts: int, vocabulary: int) -> TableModel:
    """Return a model with varied logits, set by formula so that they do not depend on a seed."""
    n = torch.arange(sources * contexts * vocabulary, dtype=torch.float64)
    return TableModel((3.0 * torch.sin(n * n * 0.7310 + n)).float().view(sources, contexts, vocabulary))


def probabilities(rows: Sequence[Sequence[float]]) -> TableModel:
    """Return a model for source token 3 from probabilities, one row per context."""
    table = torch.zeros(4, len(rows), len(rows[0]))
    table[3] = torch.tensor(rows).log()
    return TableModel(table)
