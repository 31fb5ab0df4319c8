"""The CPU engine: a trained model, decoded token by token, in as few passes over memory as possible.

What it computes. Logits and attention of the next token, as `convs2s.decode.stepwise_model`, which writes the
paper's formulas down plainly and runs on any device. Results in float32 differ only in the order of sums; in
bfloat16 and int8 also by the rounding of factors. One test compares every precision with the plain model, for
every kind of layer; `convs2s.decode.choose_model` compares each model that is loaded, in float32.

Why it is not PyTorch. A step of beam search is small: some dozens of rows, a few hundred channels. Matrix
products take half of the plain model's time; the rest goes into some twenty PyTorch operations per layer,
each of which takes microseconds to start, and passes over memory that the last one has just written. So:

1. Maps are folded. Both maps of an attention (§3.3) are linear, so they can be applied to the source, once
   per sentence, rather than to every hypothesis at every step:

       (W_d h + b_d + g) . z = h . (W_d^T z) + b_d . z + g . z
       W_c (sum_j a_j v_j) + b_c = sum_j a_j (W_c v_j + b_c), since the a_j sum to 1

   All constant factors are folded in as well.
2. Weights are packed once, in the precision asked for (`linear_maps`). Products are all that is left to
   PyTorch: there it is as fast as the CPU.
3. Everything between two products is one loop, compiled by numba (`decode_loops`): gated linear unit,
   attention and residual; windows, which also puts hypotheses in their new order; scores, normalizer and the
   likeliest tokens, so that a batch's logits never leave the cache. All of this is float32.
4. Nothing is padded. The source positions of all sentences are contiguous in memory, and stay in place when
   sentences leave the batch.

Loading numba takes a third of a second, and compiling the loops, once per installation, some seconds.
"""

import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float32, Int, Int64
from numpy.typing import NDArray
from torch import Tensor, nn

from convs2s.engine.decode import loops as decode_loops
from convs2s.engine.decode.linear_maps import (
    LinearMap,
    ScaledProduct,
    fix_layer,
    fix_weights,
    float_type,
)
from convs2s.engine.loops import as_array, run_loop
from convs2s.model.decoder import Decoder, DecoderBlock
from convs2s.model.encoder import Encoder
from convs2s.model.glu_block import SQRT_HALF, EncoderBlock
from convs2s.model.multistep_attention import MultistepAttention
from convs2s.model.precision import Precision
from convs2s.model.seq2seq import Seq2Seq

NUMBERS_AT_ONCE = 1 << 19
"""Scores of the output layer that are computed before they are read, few enough to stay in cache."""


@dataclass(frozen=True)
class LayerMemory:
    """What one layer sees of the N source positions of all sentences.

    Keys and values are bfloat16, stored as uint16, unless products are float32: reading them takes the most
    time.

    Attributes:
        keys: (N, C); multiplied by h, they give the layer's own part of the scores.
        offsets: added to the scores.
        values: (N, C); averaged by the weights, then added to the layer's output.
        scale: factor of the layer's h; the values already include it.
    """

    keys: NDArray[Any]
    offsets: Float32[np.ndarray, "N"]
    values: NDArray[Any]
    scale: np.float32


@dataclass(frozen=True)
class EngineMemory:
    """What the decoder sees of a batch of sentences.

    Attributes:
        keys: z, scaled like d; multiplied by g, they give the part of the scores that all layers share.
        layers: for each block, from the bottom; None for one that does not attend.
        starts: the first position of each sentence.
        lengths: the number of positions of each sentence, EOS included.
        width: the number of positions of the longest sentence.
    """

    keys: Float32[Tensor, "N E"]
    layers: tuple[LayerMemory | None, ...]
    starts: Int64[Tensor, "B"]
    lengths: Int64[Tensor, "B"]
    width: int

    def select(self, sentences: Int[Tensor, "R"]) -> "EngineMemory":
        """Return the memory of these sentences, in this order; nothing is copied."""
        return replace(self, starts=self.starts[sentences], lengths=self.lengths[sentences])


@dataclass(frozen=True)
class EngineState:
    """What the decoder remembers between steps.

    Attributes:
        steps: tokens decoded so far, the same for all rows.
        windows: for each layer, the inputs of the last K steps, oldest first; zeros at the start.
        parents: for each hypothesis, its row in the windows.
    """

    steps: int
    windows: tuple[Float32[Tensor, "P _"], ...]
    parents: Int64[Tensor, "R"]

    def select(self, rows: Int[Tensor, "N"]) -> "EngineState":
        """Return the state of these rows, in this order; the windows follow with the next step."""
        return replace(self, parents=self.parents[rows])


@dataclass(frozen=True)
class EngineScores:
    """The scores of the next token, computed on demand; see `convs2s.decode.token_scores.LazyScores`."""

    output: LinearMap
    features: Float32[Tensor, "R F"]  # the output layer's input

    @property
    def size(self) -> int:
        """Number of logits per row."""
        return self.output.outputs

    def logits(self) -> Float32[Tensor, "R V"]:
        """Return all logits."""
        return self.output(self.features)

    def likeliest(
        self, only: NDArray[np.int64], excluded: list[int], count: int
    ) -> tuple[Float32[Tensor, "R N"], Int64[Tensor, "R N"], Float32[Tensor, "R"]]:
        """Return each row's largest allowed logits, their tokens, and the normalizer."""
        rows = len(self.features)
        values = torch.empty(rows, count)
        tokens = torch.empty(rows, count, dtype=torch.int64)
        normalizers = torch.empty(rows)
        size = max(32, NUMBERS_AT_ONCE // self.size)
        for start in range(0, rows, size):
            part = slice(start, min(start + size, rows))
            product = self.output.product(self.features[part])
            run_loop(
                decode_loops.find_likeliest,
                len(product.numbers),
                product.numbers.numel(),
                *product,
                only=only[part],
                excluded=np.array(excluded),
                values=values[part],
                tokens=tokens[part],
                normalizers=normalizers[part],
            )
        return values, tokens, normalizers


class EngineAttention:
    """One layer's attention, with its maps folded into the source."""

    def __init__(self, attention: MultistepAttention, precision: Precision | None) -> None:
        self.scale = attention.scale
        self.value_scale = self.scale * SQRT_HALF
        self.key_map = fix_weights(attention.summary_map.weight.t() * self.scale, None, precision)
        self.key_bias = attention.summary_map.bias.detach() * self.scale
        self.context_map = fix_layer(attention.context_map, precision)
        self.memory_type = float_type(precision)

    def fold(self, z: Float32[Tensor, "N E"], values: Float32[Tensor, "N E"]) -> LayerMemory:
        """Return what the layer sees of the source positions."""
        offsets = as_array(z @ self.key_bias)
        keys = self.key_map(z).to(self.memory_type)
        context = self.context_map(values).mul_(self.value_scale).to(self.memory_type)
        return LayerMemory(as_array(keys), offsets, as_array(context), np.float32(self.scale))


class EngineBlock:
    """A block of the encoder or the decoder."""

    def __init__(self, block: nn.Module, precision: Precision | None) -> None:
        assert isinstance(block, EncoderBlock | DecoderBlock)
        self.kernel_width = block.convolution.kernel_width
        self.window_size = block.convolution.window_map.in_features
        self.window_map = fix_layer(block.convolution.window_map, precision)
        residual = block.residual.map
        self.residual_map = None if residual is None else fix_layer(residual, precision)
        attention = block.attention if isinstance(block, DecoderBlock) else None
        self.attention = None if attention is None else EngineAttention(attention, precision)

    def adapt(self, x: Float32[Tensor, "R C"]) -> Float32[Tensor, "R D"]:
        """Return the block's input in the width of its output (T2)."""
        return x if self.residual_map is None else self.residual_map(x)

    def add_to_input(self, product: ScaledProduct, x: Float32[Tensor, "R C"]) -> Float32[Tensor, "R D"]:
        """Return the output of a block without attention, from its convolution's product and its input x."""
        out = torch.empty(len(x), product.numbers.shape[1] // 2)
        work = product.numbers.numel()
        run_loop(decode_loops.add_glu, len(x), work, *product, self.adapt(x), out)
        return out


class EngineStack:
    """The encoder or the decoder: blocks between two linear maps."""

    def __init__(self, stack: Encoder | Decoder, precision: Precision | None) -> None:
        self.input_map = fix_layer(stack.input_map, precision)
        self.blocks = [EngineBlock(block, precision) for block in stack.blocks]
        self.output_map = fix_layer(stack.output_map, precision)


class EngineModel:
    """A model for beam search on a CPU, with the methods of `convs2s.decode.stepwise_model.StepwiseModel`.

    Args:
        seq2seq: in eval mode, without weight norm; its weights must not change afterwards.
        precision: of products; None: float32, quick to build, for a few steps.
    """

    def __init__(self, seq2seq: Seq2Seq, precision: Precision | None) -> None:
        self.seq2seq = seq2seq
        self.precision = precision
        self.encoder = EngineStack(seq2seq.encoder, precision)
        self.decoder = EngineStack(seq2seq.decoder, precision)
        self.attentions = [block.attention for block in self.decoder.blocks if block.attention is not None]
        output = seq2seq.output_layer
        self.target_words = seq2seq.target_embedding.words.weight.detach()
        self.output_weights, self.output_biases = output.weight.detach(), output.bias.detach()
        self.max_source_tokens, self.max_target_tokens = seq2seq.max_source_tokens, seq2seq.max_target_tokens

    def restrict(self, tokens: Int[Tensor, "N"]) -> "EngineModel":
        """Return the same model over only these target tokens (§5.4); all other weights are shared."""
        model = copy.copy(self)
        model.target_words = self.target_words.index_select(0, tokens)
        model.output_weights = self.output_weights.index_select(0, tokens)
        model.output_biases = self.output_biases.index_select(0, tokens)
        vars(model).pop("output_map", None)
        return model

    @cached_property
    def output_map(self) -> LinearMap:
        """The output layer over the tokens considered; made on first use, which restrict may avoid."""
        return fix_weights(self.output_weights, self.output_biases, self.precision)

    def encode(self, source: Int[Tensor, "B S"]) -> EngineMemory:
        """Encode source sentences, each ending in EOS, then padded."""
        real = source != self.seq2seq.padding_id
        lengths = real.sum(dim=1)
        starts = lengths.cumsum(dim=0) - lengths
        e = self._embed_source(source, real)
        x = self.encoder.input_map(e)
        for block in self.encoder.blocks:
            windows = torch.empty(len(x), block.window_size)
            run_loop(
                decode_loops.cut_windows, len(starts), windows.numel(), x, starts, lengths,
                block.kernel_width, windows,
            )  # fmt: skip
            x = block.add_to_input(block.window_map.product(windows), x)
        z = self.encoder.output_map(x)
        # sqrt(m) restores the variance lost by averaging (§3.4).
        values = (z + e).mul_(self.seq2seq.encoder.scale * lengths.sqrt().repeat_interleave(lengths)[:, None])
        layers = tuple(
            None if block.attention is None else block.attention.fold(z, values)
            for block in self.decoder.blocks
        )
        return EngineMemory(z.mul_(self.attentions[0].scale), layers, starts, lengths, source.shape[1])

    def _embed_source(self, source: Int[Tensor, "B S"], real: Bool[Tensor, "B S"]) -> Float32[Tensor, "N E"]:
        """Return the embeddings of the tokens that are not padding."""
        embedding = self.seq2seq.source_embedding
        e: Tensor = embedding.words(source[real])
        if embedding.positions is not None:
            positions = torch.arange(1, source.shape[1] + 1).expand_as(source)[real]
            e = e + embedding.positions(positions)
        return e

    def start(self, rows: int) -> EngineState:
        """Return the state before the first step, for `rows` hypotheses in total."""
        windows = tuple(torch.zeros(rows, block.window_size) for block in self.decoder.blocks)
        return EngineState(0, windows, torch.arange(rows))

    def step(
        self, tokens: Int[Tensor, "R"], memory: EngineMemory, state: EngineState
    ) -> tuple[EngineScores, Float32[Tensor, "R S"], EngineState]:
        """Advance every hypothesis by one token; as `StepwiseModel.step`."""
        rows = len(tokens)
        sentences = len(memory.lengths)
        beams = rows // sentences
        starts = memory.starts.numpy()
        lengths = memory.lengths.numpy()
        parents = state.parents.numpy()
        g = self._embed(tokens, state.steps)
        shared = torch.empty(rows, memory.width)
        work = int(lengths.sum()) * beams * g.shape[1]
        run_loop(decode_loops.match, sentences, work, g, memory.keys, starts, lengths, beams, shared)
        x = self.decoder.input_map(g)
        attention = torch.zeros(rows, memory.width)
        share = np.float32(1.0 / len(self.attentions))
        windows = []
        for block, old_window, layer in zip(self.decoder.blocks, state.windows, memory.layers, strict=True):
            window = torch.empty(rows, block.window_size)
            run_loop(decode_loops.shift_windows, rows, window.numel(), old_window, parents, x, window)
            windows.append(window)
            product = block.window_map.product(window)
            if layer is None:  # the block does not attend
                x = block.add_to_input(product, x)
                continue
            out = torch.empty(rows, product.numbers.shape[1] // 2)
            run_loop(
                decode_loops.attend,
                sentences,
                2 * work,
                *product,
                x=block.adapt(x),
                shared=shared,
                keys=layer.keys,
                offsets=layer.offsets,
                values=layer.values,
                starts=starts,
                lengths=lengths,
                beams=beams,
                scale=layer.scale,
                share=share,
                attention=attention,
                out=out,
            )
            x = out
        scores = EngineScores(self.output_map, self.decoder.output_map(x))
        return scores, attention, EngineState(state.steps + 1, tuple(windows), torch.arange(rows))

    def _embed(self, tokens: Int[Tensor, "R"], position: int) -> Float32[Tensor, "R E"]:
        """Return the embeddings g of the newest tokens, all at this position (from 0)."""
        g = F.embedding(tokens, self.target_words)
        positions = self.seq2seq.target_embedding.positions
        return g if positions is None else g + positions.weight[position + 1]  # row 0 is for padding
