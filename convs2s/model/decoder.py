"""The decoder: target embeddings and the encoder's memory -> features of the next token (§3.2, §3.3)."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from convs2s.config.model import ModelParams
from convs2s.model.glu_block import GluConvolution, Residual
from convs2s.model.initialization import linear
from convs2s.model.multistep_attention import Memory, MultistepAttention


@dataclass(frozen=True)
class DecoderState:
    """What the decoder remembers of the tokens so far, a row per hypothesis (§5.3).

    Attributes:
        steps: number of these tokens, the same for all rows.
        windows: for each block, its inputs at the last K - 1 of them, oldest first; zeros before the first.
    """

    steps: int
    windows: tuple[Float[Tensor, "R _ _"], ...]

    def select(self, rows: Int[Tensor, "N"]) -> "DecoderState":
        """Return the state of these rows, in this order; rows may repeat."""
        return DecoderState(self.steps, tuple(window[rows] for window in self.windows))


class DecoderBlock(nn.Module):
    """A causal block, with or without attention (§3.2, §3.3)."""

    def __init__(
        self,
        inputs: int,
        outputs: int,
        kernel_width: int,
        dropout: float,
        attention: MultistepAttention | None,
    ) -> None:
        super().__init__()
        self.inputs = inputs
        self.convolution = GluConvolution(inputs, outputs, kernel_width, dropout)
        self.attention = attention
        self.residual = Residual(inputs, outputs)

    def forward(
        self,
        x: Float[Tensor, "R T C"],
        g: Float[Tensor, "R T E"],
        memory: Memory,
        window: Float[Tensor, "R _ C"] | None = None,
    ) -> tuple[Float[Tensor, "R T D"], Float[Tensor, "R T S"] | None, Float[Tensor, "R _ C"] | None]:
        """Transform positions: all of a sentence at once, or the next ones.

        Args:
            window: the block's inputs at the K - 1 positions before these; None if `x` has all positions.

        Returns:
            The output; the attention weights, if the block attends; and the window for the positions that
            follow, or None if `window` is None.
        """
        if window is None:
            # The paper pads k - 1 zeros on both sides and cuts the tail (T3): left padding is equivalent.
            h = self.convolution(x, self.convolution.kernel_width - 1, 0)
        else:
            seen = torch.cat([window, x], dim=1)
            h = self.convolution(seen, 0, 0)
            window = seen[:, x.shape[1] :]
        weights = None
        if self.attention is not None:
            h, weights = self.attention(h, g, memory)
        return self.residual(x, h), weights, window


class Decoder(nn.Module):
    """A stack of causal blocks between two linear maps (§3.2).

    Args:
        dropout: probability of dropping, on the input of every block (§4.2).
    """

    def __init__(self, params: ModelParams, dropout: float) -> None:
        super().__init__()
        size, widths = params.embedding_size, params.decoder_widths
        self.input_map = linear(size, widths[0], keep=1.0 - dropout)
        inputs = [widths[0], *widths[:-1]]
        self.blocks = nn.ModuleList()
        for c, d, k, attends in zip(inputs, widths, params.decoder_kernels, params.attention, strict=True):
            attention = MultistepAttention(d, size, params.extra_scaling) if attends else None
            self.blocks.append(DecoderBlock(c, d, k, dropout, attention))
        self.output_map = linear(widths[-1], params.output_embedding_size)

    def layers(self) -> list[DecoderBlock]:
        """Return the blocks, bottom first."""
        return [block for block in self.blocks if isinstance(block, DecoderBlock)]

    def start(self, rows: int) -> DecoderState:
        """Return the state before the first token of `rows` hypotheses."""
        weight = self.output_map.bias  # has the dtype and device of all weights
        windows = (
            weight.new_zeros(rows, block.convolution.kernel_width - 1, block.inputs)
            for block in self.layers()
        )
        return DecoderState(0, tuple(windows))

    def forward(
        self, g: Float[Tensor, "R T E"], memory: Memory, state: DecoderState | None = None
    ) -> tuple[Float[Tensor, "R T F"], list[Float[Tensor, "R T S"]], DecoderState | None]:
        """Return features of each position, the weights of each attention, bottom first, and the next state.

        Args:
            g: embeddings of all target tokens, or of those that follow the ones that `state` remembers.
            memory: of B sentences; the rows are grouped by sentence, H for each, so R = B * H.
            state: None if all tokens are given; the next state is then None, too.
        """
        x = self.input_map(g)
        attention = []
        windows = []
        for i, block in enumerate(self.blocks):
            x, weights, window = block(x, g, memory, None if state is None else state.windows[i])
            windows.append(window)
            if weights is not None:
                attention.append(weights)
        following = None
        if state is not None:
            following = DecoderState(state.steps + g.shape[1], tuple(windows))
        return self.output_map(x), attention, following
