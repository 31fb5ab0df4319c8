"""The two parts of a model that other programs run: the encoder, and one step of the decoder (§5.3)."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from convs2s.model.multistep_attention import Memory
from convs2s.model.seq2seq import Seq2Seq, average_attention

ENCODER, STEP = "encoder", "decoder_step"
ENCODER_NAMES = (["source"], ["keys", "values", "padding"])


class EncoderPart(nn.Module):
    """Source sentences -> the decoder's view of them."""

    def __init__(self, model: Seq2Seq) -> None:
        super().__init__()
        self.embedding, self.encoder = model.source_embedding, model.encoder
        self.padding_id = model.padding_id

    def forward(self, source: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return keys and values (B, S, E), and padding (B, S), of ids (B, S).

        Unlike the model, which checks for padding first, this always masks: a graph has no branches.
        """
        padding = source == self.padding_id
        keys, values = self.encoder(self.embedding(source, padding), padding)
        return keys, values, padding


class DecoderStepPart(nn.Module):
    """The newest tokens -> scores of the next ones.

    Layers with kernel width 1 remember nothing and have no window.
    """

    def __init__(self, model: Seq2Seq) -> None:
        super().__init__()
        self.words, self.positions = model.target_embedding.words, model.target_embedding.positions
        self.decoder, self.output_layer = model.decoder, model.output_layer

    def window_shapes(self) -> list[tuple[int, int]]:
        """Return K - 1 and C of each layer that remembers inputs, bottom first."""
        return [
            (block.convolution.kernel_width - 1, block.inputs)
            for block in self.decoder.layers()
            if block.convolution.kernel_width > 1
        ]

    def forward(
        self,
        tokens: Tensor,
        position: Tensor,
        keys: Tensor,
        values: Tensor,
        padding: Tensor,
        windows: list[Tensor],
    ) -> tuple[Tensor, Tensor, list[Tensor]]:
        """Advance H hypotheses of each of B sentences by one token.

        Args:
            tokens: (B, H), the newest token of each hypothesis, EOS at the first step.
            position: (1,), number of steps done so far.
            keys: (B, S, E), from the encoder, as are values and padding.
            values: (B, S, E).
            padding: (B, S).
            windows: (B, H, K - 1, C) of each layer with K > 1; zeros at the first step.

        Returns:
            Logits (B, H, V), attention averaged over layers (B, H, S), and the next windows.
        """
        memory = Memory(keys, values, padding, (~padding).sum(dim=1))
        g = self.words(tokens)
        if self.positions is not None:
            g = g + self.positions(position + 1)
        x = self.decoder.input_map(g)
        attention, waiting, following = [], list(windows), []
        for block in self.decoder.layers():
            full = x[:, :, None]  # (B, H, 1, C)
            if block.convolution.kernel_width > 1:
                full = torch.cat([waiting.pop(0), full], dim=2)  # (B, H, K, C)
                following.append(full[:, :, 1:])
            # As in decode.stepwise_model, but with B and H apart: otherwise the exported graph needs H > 1.
            h = F.glu(block.convolution.window_map(full.flatten(2)), dim=-1)
            if block.attention is not None:
                h, weights = block.attention(h, g, memory)
                attention.append(weights)
            x = block.residual(x, h)
        logits = self.output_layer(self.decoder.output_map(x))
        return logits, average_attention(attention), following


def first_windows(step: DecoderStepPart, sentences: int, hypotheses: int) -> list[Tensor]:
    """Return the windows of the first step: zeros."""
    return [torch.zeros(sentences, hypotheses, width, channels) for width, channels in step.window_shapes()]


def step_names(step: DecoderStepPart) -> tuple[list[str], list[str]]:
    """Return the names of the decoder step's inputs and outputs, in order."""
    windows = [f"window_{i}" for i, _ in enumerate(step.window_shapes())]
    inputs = ["tokens", "position", *ENCODER_NAMES[1], *windows]
    return inputs, ["logits", "attention", *(f"next_{name}" for name in windows)]
