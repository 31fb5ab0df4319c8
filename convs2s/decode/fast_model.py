"""The stepwise model with less work per step: attention maps folded into the source, weights packed.

Both maps of an attention (§3.3) are linear, so they can be applied to the source, once per sentence,
rather than to every hypothesis at every step:

    (W_d h + b_d + g) . z = h . (W_d^T z) + b_d . z + g . z
    W_c (sum_j a_j v_j) + b_c = sum_j a_j (W_c v_j + b_c), since the a_j sum to 1

All constant factors are folded in as well. Results equal those of `StepwiseModel` up to rounding.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from convs2s.decode.packed_linear import FixedLinear, MakeLinear, fixed_linear, replace_linear_maps
from convs2s.decode.stepwise_model import DecoderState, StepwiseModel
from convs2s.model.decoder import DecoderBlock
from convs2s.model.glu_block import SQRT_HALF
from convs2s.model.multistep_attention import Memory
from convs2s.model.seq2seq import Seq2Seq


@dataclass(frozen=True)
class FoldedAttention:
    """What one layer sees of the source.

    Attributes:
        keys: multiplied by h, they give the layer's own part of the scores.
        offset: added to the scores; -inf at padding.
        values: averaged by the weights, then added to the layer's output.
    """

    keys: Float[Tensor, "B C S"]
    offset: Float[Tensor, "B 1 S"]
    values: Float[Tensor, "B S D"]


@dataclass(frozen=True)
class FoldedMemory:
    """What the decoder sees of a batch of sentences.

    Attributes:
        keys: z, scaled like d; multiplied by g, they give the part of the scores that all layers share.
        layers: one for each block that attends, bottom first.
    """

    keys: Float[Tensor, "B E S"]
    layers: tuple[FoldedAttention, ...]

    def select(self, sentences: Int[Tensor, "R"]) -> "FoldedMemory":
        """Return the memory of these sentences, in this order; rows may repeat."""
        layers = (
            FoldedAttention(layer.keys[sentences], layer.offset[sentences], layer.values[sentences])
            for layer in self.layers
        )
        return FoldedMemory(self.keys[sentences], tuple(layers))


class AttentionFolder:
    """Folds the maps of one layer's attention into the source."""

    def __init__(self, block: DecoderBlock, make: MakeLinear) -> None:
        attention = block.attention
        assert attention is not None
        self.scale = attention.scale
        self.value_scale = self.scale * SQRT_HALF
        self.key_map = make(attention.summary_map.weight.t() * self.scale, None)
        self.key_bias = attention.summary_map.bias.detach() * self.scale
        self.context_map = make(attention.context_map.weight, attention.context_map.bias)

    def fold(self, memory: Memory) -> FoldedAttention:
        """Return what the layer sees of encoded sentences."""
        offset = (memory.keys @ self.key_bias)[:, None]
        if memory.padding is not None:
            offset = offset.masked_fill(memory.padding[:, None], -torch.inf)
        # sqrt(m) restores the variance lost by averaging (§3.4); float32 even in bfloat16 (T38).
        values = memory.values * memory.lengths.sqrt()[:, None, None]
        context = self.context_map(values.to(memory.values.dtype)) * self.value_scale
        return FoldedAttention(self.key_map(memory.keys).transpose(1, 2), offset, context)


class FastModel(StepwiseModel):
    """A model for beam search, with less work per step than `StepwiseModel`.

    Args:
        seq2seq: in eval mode, on a CPU; its linear maps are replaced, so it cannot be saved afterwards.
        make: makes the linear maps.
    """

    def __init__(self, seq2seq: Seq2Seq, make: MakeLinear = fixed_linear) -> None:
        super().__init__(seq2seq)
        self.make = make
        layers = seq2seq.decoder.layers()
        self.folders = [None if block.attention is None else AttentionFolder(block, make) for block in layers]
        for part in (seq2seq.encoder, seq2seq.decoder):
            replace_linear_maps(part, make)

    def restricted(self, tokens: Int[Tensor, "N"]) -> "FastModel":
        """Return the same model over only these target tokens; all other weights are shared."""
        model = FastModel.__new__(FastModel)
        StepwiseModel.__init__(model, self.seq2seq, tokens)
        model.folders, model.make = self.folders, self.make
        return model

    def compiled(self) -> Any:
        """Return the same model in compiled loops, which take time to load, and more to compile."""
        from convs2s.decode.compiled_model import CompiledModel  # noqa: PLC0415  # imports numba

        return CompiledModel(self)

    @cached_property
    def output(self) -> FixedLinear:
        """The output layer over the tokens considered; made on first use, so `restricted` may avoid it."""
        return self.make(self.output_weights, self.output_biases)

    def encode(self, source: Int[Tensor, "B S"]) -> Any:
        """Encode source sentences, each ending in EOS, then padded."""
        memory = self.seq2seq.encode(source)
        folders = [folder for folder in self.folders if folder is not None]
        keys = memory.keys.transpose(1, 2) * folders[0].scale
        return FoldedMemory(keys, tuple(folder.fold(memory) for folder in folders))

    def step(
        self, tokens: Int[Tensor, "R"], memory: Any, state: DecoderState
    ) -> tuple[Float[Tensor, "R V"], Float[Tensor, "R S"], DecoderState]:
        """Advance every hypothesis by one token; as `StepwiseModel.step`."""
        decoder = self.seq2seq.decoder
        g = self._embed(tokens, state.steps, len(memory.keys))
        shared = torch.bmm(g, memory.keys)  # (B, H, S)
        x, waiting = decoder.input_map(g), iter(memory.layers)
        attention, windows = [], []
        for block, folder, old_window in zip(decoder.layers(), self.folders, state.windows, strict=True):
            full = torch.cat([old_window, x.reshape(-1, 1, block.inputs)], dim=1)  # (R, K, C)
            windows.append(full[:, 1:])
            h = F.glu(block.convolution.window_map(full.flatten(1)), dim=-1).view(*x.shape[:2], -1)
            if folder is None:
                x = block.residual(x, h)
                continue
            x, weights = attend_folded(block, folder.scale, x, h, shared, next(waiting))
            attention.append(weights)
        logits = self.output(decoder.output_map(x)).flatten(0, 1).float()
        averaged = torch.stack(attention).mean(dim=0).flatten(0, 1)
        return logits, averaged, DecoderState(state.steps + 1, tuple(windows))


def attend_folded(
    block: DecoderBlock,
    scale: float,
    x: Float[Tensor, "B H C"],
    h: Float[Tensor, "B H D"],
    shared: Float[Tensor, "B H S"],
    layer: FoldedAttention,
) -> tuple[Float[Tensor, "B H D"], Float[Tensor, "B H S"]]:
    """Attend and add the block's input x to its output h; also return the weights."""
    scores = torch.baddbmm(shared + layer.offset, h, layer.keys)
    weights = torch.softmax(scores, dim=-1, dtype=torch.float32)
    if block.residual.map is not None:
        x = block.residual.map(x)
    # ((c + h) * scale + x) * sqrt(0.5); layer.values already include both factors.
    rest = torch.add(h, x, alpha=1.0 / scale)
    return torch.baddbmm(rest, weights.to(h.dtype), layer.values, beta=scale * SQRT_HALF), weights
