"""Word embeddings with learned absolute positions (§3.1)."""

import copy

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from convs2s.model.initialization import lookup_table


class Embedding(nn.Module):
    """Sum of a word's and its position's vector, with dropout (§3.1, §4.2).

    Args:
        vocabulary_size: vocabulary entries, special symbols included.
        channels: f, the size of both kinds of vectors.
        max_positions: rows of the position table, row 0 being for padding; None for no positions.
        padding_id: the id whose vectors are zero.
        dropout: probability of dropping.
    """

    def __init__(
        self, vocabulary_size: int, channels: int, max_positions: int | None, padding_id: int, dropout: float
    ) -> None:
        super().__init__()
        self.words = lookup_table(vocabulary_size, channels, padding_id)
        self.positions = lookup_table(max_positions, channels, 0) if max_positions else None
        self.dropout = dropout

    @property
    def max_tokens(self) -> int | None:
        """Longest sequence that the position table allows, EOS included; None for any."""
        return self.positions.num_embeddings - 1 if self.positions else None

    def restricted(self, types: Int[Tensor, "N"]) -> "Embedding":
        """Return the embedding of these types only, for reading; the position table is shared."""
        embedding = copy.copy(self)
        embedding._modules = dict(self._modules)  # a copy of a module shares its table of parts
        rows = self.words.weight.detach().index_select(0, types)
        embedding.words = nn.Embedding.from_pretrained(rows, padding_idx=self.words.padding_idx)
        return embedding

    def forward(
        self, tokens: Int[Tensor, "B N"], padding: Bool[Tensor, "B N"] | None = None, start: int = 0
    ) -> Float[Tensor, "B N E"]:
        """Embed tokens, the first of which is at position `start` of its sentence.

        Args:
            padding: True at positions without a token; they follow the tokens.

        Raises:
            ValueError: if a sentence is longer than the position table.
        """
        embedded: Tensor = self.words(tokens)
        if self.positions is not None:
            end = start + tokens.shape[1]
            if end > self.positions.num_embeddings - 1:
                raise ValueError(
                    f"A sequence has {end} tokens, EOS included, but the position table holds "
                    f"{self.positions.num_embeddings - 1}. Raise model.max_positions, or filter or split "
                    "longer sentences (filter.max_words)."
                )
            rows = torch.arange(start + 1, end + 1, device=tokens.device)
            if padding is None:
                embedded = embedded + self.positions(rows)
            else:
                embedded = embedded + self.positions(rows.expand_as(tokens).masked_fill(padding, 0))
        return F.dropout(embedded, self.dropout, self.training)
