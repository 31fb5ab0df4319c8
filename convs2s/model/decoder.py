"""The decoder: target embeddings and the encoder's memory -> features of the next token (§3.2, §3.3)."""

from collections.abc import Sequence

from jaxtyping import Float
from torch import Tensor, nn

from convs2s.model.glu_block import PLAIN_LAYERS, Layers, Residual
from convs2s.model.initialization import linear
from convs2s.model.multistep_attention import Memory, MultistepAttention


class DecoderBlock(nn.Module):
    """A causal block, with or without attention (§3.2, §3.3)."""

    def __init__(
        self,
        inputs: int,
        outputs: int,
        kernel_width: int,
        dropout: float,
        attention: MultistepAttention | None,
        layers: Layers = PLAIN_LAYERS,
    ) -> None:
        super().__init__()
        self.inputs = inputs
        self.convolution = layers.convolution(inputs, outputs, kernel_width, dropout)
        self.attention = attention
        self.residual = Residual(inputs, outputs)

    def forward(
        self, x: Float[Tensor, "B T C"], g: Float[Tensor, "B T E"], memory: Memory
    ) -> tuple[Float[Tensor, "B T D"], Float[Tensor, "B T S"] | None]:
        """Transform all positions at once; also return the attention weights."""
        # The paper pads k - 1 zeros on both sides and cuts the tail (T3): left padding alone is equivalent.
        h = self.convolution(x, self.convolution.kernel_width - 1, 0)
        return self.attend(x, h, g, memory)

    def attend(
        self, x: Float[Tensor, "B T C"], h: Float[Tensor, "B T D"], g: Float[Tensor, "B T E"], memory: Memory
    ) -> tuple[Float[Tensor, "B T D"], Float[Tensor, "B T S"] | None]:
        """Attend, if this block does, and add its input x to its output h; also return the weights."""
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
        layers: Layers = PLAIN_LAYERS,
    ) -> None:
        super().__init__()
        self.input_map = linear(embedding_size, widths[0], keep=1.0 - dropout)
        inputs = [widths[0], *widths[:-1]]
        self.blocks = nn.ModuleList(
            DecoderBlock(
                c, d, k, dropout, MultistepAttention(d, embedding_size, extra_scaling) if a else None, layers
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
