"""Convolutional sequence to sequence learning: token ids -> scores of the next target token (§3)."""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from convs2s.config.model import ModelParams
from convs2s.model.decoder import Decoder, DecoderState
from convs2s.model.embedding import Embedding
from convs2s.model.encoder import Encoder
from convs2s.model.initialization import linear, output_table
from convs2s.model.multistep_attention import Memory


def average_attention(layers: Sequence[Float[Tensor, "B T S"]]) -> Float[Tensor, "B T S"]:
    """Return the mean of the attending layers' weights, which sums to 1 over S (§4.3, T7)."""
    return torch.stack(list(layers)).mean(dim=0)


class Seq2Seq(nn.Module):
    """Encoder, decoder and softmax layer.

    Args:
        source_size: source vocabulary entries, special symbols included.
        target_size: the same for the target.
        padding_id: the id that pads short sentences, after their tokens, on both sides.
        plain_output: make the output layer a table without weight norm, for vocabulary selection (T16).
    """

    def __init__(
        self,
        params: ModelParams,
        source_size: int,
        target_size: int,
        padding_id: int,
        dropout: float,
        plain_output: bool = False,
    ) -> None:
        super().__init__()
        self.padding_id = padding_id
        size, rows = params.embedding_size, params.max_positions
        self.source_embedding = Embedding(
            source_size, size, rows if params.source_positions else None, padding_id, dropout
        )
        self.target_embedding = Embedding(
            target_size, size, rows if params.target_positions else None, padding_id, dropout
        )
        self.max_source_tokens = self.source_embedding.max_tokens
        self.max_target_tokens = self.target_embedding.max_tokens
        self.encoder = Encoder(params, dropout)
        self.decoder = Decoder(params, dropout)
        self.dropout = nn.Dropout(dropout)
        self.output_layer = (  # W_o, b_o
            output_table(params.output_embedding_size, target_size)
            if plain_output
            else linear(params.output_embedding_size, target_size, keep=1.0 - dropout)
        )

    def encode(self, source: Int[Tensor, "B S"]) -> Memory:
        """Encode source sentences, each ending in EOS, padded after it."""
        padded = source == self.padding_id
        lengths = (~padded).sum(dim=1)
        # Training and GPUs always use the mask: a GPU would have to finish all work to say if it is needed.
        is_used = self.training or source.device.type != "cpu" or bool(padded.any())
        padding = padded if is_used else None
        e = self.source_embedding(source, padding)
        keys, values = self.encoder(e, padding)
        return Memory(keys, values, padding, lengths)

    def features(
        self, target_input: Int[Tensor, "R T"], memory: Memory, state: DecoderState | None = None
    ) -> tuple[Float[Tensor, "R T F"], list[Float[Tensor, "R T S"]], DecoderState | None]:
        """Return the softmax layer's input for each target position, each layer's attention, the next state.

        Args:
            target_input: the target shifted right: EOS, then all tokens but the last (T19); or those of its
                tokens that follow the ones that `state` remembers.
            memory: of B sentences; the rows are grouped by sentence, H for each, so R = B * H.
            state: None if all tokens are given; the next state is then None, too.
        """
        # Padding follows a target's end and the decoder is causal: no real position depends on it.
        g = self.target_embedding(target_input, before=state.steps if state else 0)
        x, attention, following = self.decoder(g, memory, state)
        return self.dropout(x), attention, following

    def output_rows(
        self, entries: Int[Tensor, "N"] | None
    ) -> tuple[Float[Tensor, "N F"], Float[Tensor, "N"]]:
        """Return weight and bias of the softmax layer for these target entries; None for all (§5.4)."""
        weight: Tensor = self.output_layer.weight
        bias: Tensor = self.output_layer.bias
        if entries is None:
            return weight, bias
        return weight.index_select(0, entries), bias.index_select(0, entries)

    def forward(
        self, source: Int[Tensor, "B S"], target_input: Int[Tensor, "B T"]
    ) -> tuple[Float[Tensor, "B T V"], Float[Tensor, "B T S"]]:
        """Return logits of every next token, and the attention averaged over layers."""
        features, attention, _ = self.features(target_input, self.encode(source))
        return self.output_layer(features), average_attention(attention)
