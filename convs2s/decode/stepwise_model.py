"""A trained model, decoded token by token without recomputation (§5.3), over all or some tokens (§5.4)."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from convs2s.model.decoder import DecoderBlock
from convs2s.model.multistep_attention import Memory
from convs2s.model.seq2seq import Seq2Seq, average_attention


@dataclass(frozen=True)
class DecoderState:
    """What the decoder remembers between steps, a row per hypothesis (§5.3).

    Attributes:
        steps: tokens decoded so far, the same for all rows.
        windows: for each layer, the inputs of its last K - 1 steps, oldest first; zeros at the start.
    """

    steps: int
    windows: tuple[Float[Tensor, "R _ _"], ...]

    def select(self, rows: Int[Tensor, "N"]) -> "DecoderState":
        """Return the state of these rows, in this order; rows may repeat."""
        return DecoderState(self.steps, tuple(window[rows] for window in self.windows))


class StepwiseModel:
    """A model in the form that beam search uses.

    Args:
        seq2seq: in eval mode; its weights must not change afterwards.
        tokens: ids of the only target tokens to consider, for vocabulary selection (§5.4). Token i of this
            model is then tokens[i], and probabilities are normalized over these tokens. None: all tokens.
    """

    def __init__(self, seq2seq: Seq2Seq, tokens: Int[Tensor, "N"] | None = None) -> None:
        self.seq2seq = seq2seq
        self.max_source_tokens, self.max_target_tokens = seq2seq.max_source_tokens, seq2seq.max_target_tokens
        output = seq2seq.output_layer
        tables = (seq2seq.target_embedding.words.weight, output.weight, output.bias)
        self.embeddings, self.output_weights, self.output_biases = (
            table.detach() if tokens is None else table.detach().index_select(0, tokens) for table in tables
        )

    def restrict(self, tokens: Int[Tensor, "N"]) -> "StepwiseModel":
        """Return the same model over only these target tokens; all other weights are shared."""
        return StepwiseModel(self.seq2seq, tokens)

    def encode(self, source: Int[Tensor, "B S"]) -> Memory:
        """Encode source sentences, each ending in EOS, then padded."""
        return self.seq2seq.encode(source)

    def start(self, rows: int) -> DecoderState:
        """Return the state before the first step, for `rows` hypotheses in total."""
        windows = (
            self.output_biases.new_zeros(rows, block.convolution.kernel_width - 1, block.inputs)
            for block in self.seq2seq.decoder.layers()
        )
        return DecoderState(0, tuple(windows))

    def step(
        self, tokens: Int[Tensor, "R"], memory: Memory, state: DecoderState
    ) -> tuple[Float[Tensor, "R V"], Float[Tensor, "R S"], DecoderState]:
        """Advance every hypothesis by one token.

        Args:
            tokens: the newest token of each hypothesis, EOS at the first step. R = B * H rows, H per sentence
                of `memory`, grouped by sentence, so that the source is stored once.

        Returns:
            Logits of the next token, attention averaged over layers, and the next state.
        """
        decoder = self.seq2seq.decoder
        g = F.embedding(tokens, self.embeddings)
        positions = self.seq2seq.target_embedding.positions
        if positions is not None:
            g = g + positions.weight[state.steps + 1]  # row 0 is for padding
        g = g.view(len(memory.keys), -1, g.shape[-1])  # (B, H, E)
        x = decoder.input_map(g)
        attention, windows = [], []
        for block, old_window in zip(decoder.layers(), state.windows, strict=True):
            x, weights, window = step_block(block, x, g, memory, old_window)
            windows.append(window)
            if weights is not None:
                attention.append(weights)
        logits = F.linear(decoder.output_map(x), self.output_weights, self.output_biases)
        averaged = average_attention(attention).flatten(0, 1)
        return logits.flatten(0, 1).float(), averaged, DecoderState(state.steps + 1, tuple(windows))


def step_block(
    block: DecoderBlock,
    x: Float[Tensor, "B H C"],
    g: Float[Tensor, "B H E"],
    memory: Memory,
    window: Float[Tensor, "R K C"],
) -> tuple[Float[Tensor, "B H D"], Float[Tensor, "B H S"] | None, Float[Tensor, "R K C"]]:
    """Transform the newest position of H hypotheses per sentence; also return the next window."""
    full = torch.cat([window, x.reshape(-1, 1, block.inputs)], dim=1)  # (R, K, C)
    h = F.glu(block.convolution.window_map(full.flatten(1)), dim=-1).view(*x.shape[:2], -1)
    output, weights = block.attend(x, h, g, memory)
    return output, weights, full[:, 1:]
