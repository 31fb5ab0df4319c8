"""Word embeddings with learned absolute positions (§3.1)."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from convs2s.model.initialization import lookup_table


class Embedding(nn.Module):
    """Sum of a word's and its position's vector, with dropout (§3.1, §4.2).

    Args:
        vocabulary_size: vocabulary entries, special symbols included.
        channels: f, the size of both kinds of vectors.
        max_positions: rows of the position table, of which row 0 is for padding; None for no positions.
        padding_id: the id whose vectors are zero.
    """

    def __init__(
        self,
        vocabulary_size: int,
        channels: int,
        max_positions: int | None,
        padding_id: int,
        dropout: float,
    ) -> None:
        super().__init__()
        self.words = lookup_table(vocabulary_size, channels, padding_id)
        self.positions = lookup_table(max_positions, channels, 0) if max_positions else None
        # The longest sequence that the position table allows, EOS included; None for any.
        self.max_tokens = max_positions - 1 if max_positions else None
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, tokens: Int[Tensor, "B N"], padding: Bool[Tensor, "B N"] | None = None, before: int = 0
    ) -> Float[Tensor, "B N E"]:
        """Embed sentences, or what comes next in them.

        Args:
            padding: True at positions without a token; they follow the tokens.
            before: number of tokens that each sentence has before these.
        """
        embedded: Tensor = self.words(tokens)
        if self.positions is not None:
            first = before + 1  # row 0 is for padding
            rows = torch.arange(first, first + tokens.shape[1], device=tokens.device)
            if padding is None:
                embedded = embedded + self.positions(rows)
            else:
                embedded = embedded + self.positions(rows.expand_as(tokens).masked_fill(padding, 0))
        return self.dropout(embedded)  # type: ignore[no-any-return]
