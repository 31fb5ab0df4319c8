"""The decoder: target embeddings and the encoder's memory -> features of the next token (§3.2, §3.3)."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from convs2s.model.glu_block import GluConvolution, Residual
from convs2s.model.initialization import linear
from convs2s.model.multistep_attention import Memory, MultistepAttention


@dataclass(frozen=True)
class DecoderState:
    """What step-by-step decoding remembers, a row per hypothesis (§5.3).

    Attributes:
        steps: tokens decoded so far, the same for all rows.
        windows: for each layer the inputs of its last K - 1 steps, oldest first; zeros at the start.
    """

    steps: int
    windows: tuple[Float[Tensor, "R _ _"], ...]

    def select(self, rows: Int[Tensor, "N"]) -> "DecoderState":
        """Return the state of these rows, in this order; rows may repeat."""
        return DecoderState(self.steps, tuple(window[rows] for window in self.windows))


class DecoderBlock(nn.Module):
    """A block that does not see the future, with or without attention (§3.2, §3.3)."""

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
        self, x: Float[Tensor, "B T C"], g: Float[Tensor, "B T E"], memory: Memory
    ) -> tuple[Float[Tensor, "B T D"], Float[Tensor, "B T S"] | None]:
        """Transform all positions at once; return also the attention weights."""
        # The paper pads k - 1 zeros on both sides and cuts the tail (T3): left padding alone is equivalent.
        h = self.convolution(x, self.convolution.kernel_width - 1, 0)
        return self._finish(x, h, g, memory)

    def step(
        self,
        x: Float[Tensor, "B H C"],
        g: Float[Tensor, "B H E"],
        memory: Memory,
        window: Float[Tensor, "R K C"],
    ) -> tuple[Float[Tensor, "B H D"], Float[Tensor, "B H S"] | None, Float[Tensor, "R K C"]]:
        """Transform the newest position of H hypotheses per sentence; return also the next window."""
        full = torch.cat([window, x.reshape(-1, 1, self.inputs)], dim=1)  # (R, K, C)
        h = self.convolution.step(full).view(x.shape[0], x.shape[1], -1)
        output, weights = self._finish(x, h, g, memory)
        return output, weights, full[:, 1:]

    def _finish(self, x: Tensor, h: Tensor, g: Tensor, memory: Memory) -> tuple[Tensor, Tensor | None]:
        weights = None
        if self.attention is not None:
            h, weights = self.attention(h, g, memory)
        return self.residual(x, h), weights


class Decoder(nn.Module):
    """A stack of causal blocks between two linear maps (§3.2).

    Args:
        embedding_size: of g and of the encoder's memory.
        output_size: of the features that the softmax layer takes.
        widths: channels of each block, bottom first.
        kernel_widths: in positions.
        attention: which blocks attend (Table 5).
        dropout: probability of dropping, on the input of every block (§4.2).
        extra_scaling: sqrt(0.5) on d and c + h (T4).
    """

    def __init__(
        self,
        embedding_size: int,
        output_size: int,
        widths: Sequence[int],
        kernel_widths: Sequence[int],
        attention: Sequence[bool],
        dropout: float,
        extra_scaling: bool,
    ) -> None:
        super().__init__()
        self.input_map = linear(embedding_size, widths[0], keep=1.0 - dropout)
        inputs = [widths[0], *widths[:-1]]
        self.blocks = nn.ModuleList(
            DecoderBlock(
                c, d, k, dropout, MultistepAttention(d, embedding_size, extra_scaling) if a else None
            )
            for c, d, k, a in zip(inputs, widths, kernel_widths, attention, strict=True)
        )
        self.output_map = linear(widths[-1], output_size)

    def layers(self) -> list[DecoderBlock]:
        """Return the blocks, bottom first."""
        return [block for block in self.blocks if isinstance(block, DecoderBlock)]

    def forward(
        self, g: Float[Tensor, "B T E"], memory: Memory
    ) -> tuple[Float[Tensor, "B T F"], list[Float[Tensor, "B T S"]]]:
        """Return features of all positions, and the weights of each attention, bottom first."""
        x = self.input_map(g)
        attention = []
        for block in self.blocks:
            x, weights = block(x, g, memory)
            if weights is not None:
                attention.append(weights)
        return self.output_map(x), attention

    def start(self, rows: int) -> DecoderState:
        """Return the state before the first step, for `rows` hypotheses."""
        windows = (
            self.output_map.bias.new_zeros(rows, block.convolution.kernel_width - 1, block.inputs)
            for block in self.layers()
        )
        return DecoderState(0, tuple(windows))

    def step(
        self, g: Float[Tensor, "B H E"], memory: Memory, state: DecoderState
    ) -> tuple[Float[Tensor, "B H F"], list[Float[Tensor, "B H S"]], DecoderState]:
        """Advance H hypotheses per sentence by one position; rows are grouped by sentence."""
        x = self.input_map(g)
        attention, windows = [], []
        for block, window in zip(self.layers(), state.windows, strict=True):
            x, weights, window = block.step(x, g, memory, window)  # noqa: PLW2901
            windows.append(window)
            if weights is not None:
                attention.append(weights)
        return self.output_map(x), attention, DecoderState(state.steps + 1, tuple(windows))
