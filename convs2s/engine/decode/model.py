"""The CPU engine: a trained model, decoded token by token, in as few passes over memory as possible.

What it computes. Logits and attention of the next token, as `convs2s.search.stepwise_model`, which writes the
paper's formulas down plainly and runs on any device. Results in float32 differ only in the order of sums; in
bfloat16 and int8 also by the rounding of factors. One test compares every precision with the plain model, for
every kind of layer; `convs2s.search.choose_model` compares each model that is loaded, in float32.

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
   likeliest tokens, so that a batch's logits never leave the cache; the best continuations of each sentence.
   All of this is float32. Loops take NumPy's arrays, which are made and passed on in less than a microsecond
   each: for a single sentence, that counts as much as the loops do.
4. Sentences are not padded. The source positions of all of them are contiguous in memory, and stay in place
   when sentences leave the batch.

Loading numba takes a third of a second, and compiling the loops, once per installation, some seconds.
"""

import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from jaxtyping import Float32, Int, Int64
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
from convs2s.engine.loops import as_array, run_on_arrays
from convs2s.model.decoder import Decoder, DecoderBlock
from convs2s.model.encoder import Encoder
from convs2s.model.glu_block import SQRT_HALF, EncoderBlock
from convs2s.model.multistep_attention import MultistepAttention
from convs2s.model.precision import Precision
from convs2s.model.seq2seq import Seq2Seq

NUMBERS_AT_ONCE = 1 << 19
"""Scores of the output layer that are computed before they are read, few enough to stay in cache."""
FEW_ROWS, LARGE_BLOCK = 96, 1 << 22
"""With many entries, this many rows are computed at once, unless their scores are more than `LARGE_BLOCK`.

Each block of rows reads all weights again, which costs more than scores that leave the inner caches.
"""
ROW_BITS = 4
"""Leading binary digits of the numbers of rows that products have, from which the other digits are 0."""


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

    keys: Float32[np.ndarray, "N E"]
    layers: tuple[LayerMemory | None, ...]
    starts: Int64[np.ndarray, "B"]
    lengths: Int64[np.ndarray, "B"]
    width: int

    def select(self, sentences: Int[Tensor, "R"]) -> "EngineMemory":
        """Return the memory of these sentences, in this order; nothing is copied."""
        index = sentences.numpy()
        return EngineMemory(self.keys, self.layers, self.starts[index], self.lengths[index], self.width)


@dataclass(frozen=True)
class EngineState:
    """What the decoder remembers between steps.

    Attributes:
        steps: tokens decoded so far, the same for all rows.
        windows: for each layer, the inputs of the last K steps, oldest first; zeros at the start.
        parents: for each hypothesis, its row in the windows.
    """

    steps: int
    windows: tuple[NDArray[Any], ...]
    parents: Int64[np.ndarray, "R"]

    def select(self, rows: Int[Tensor, "N"]) -> "EngineState":
        """Return the state of these rows, in this order; the windows follow with the next step."""
        return EngineState(self.steps, self.windows, self.parents[rows.numpy()])


@dataclass(frozen=True)
class EngineScores:
    """The scores of the next token, computed on demand; see `convs2s.search.token_scores.LazyScores`."""

    output: LinearMap
    features: Float32[np.ndarray, "P F"]  # the output layer's input; the first rows are the hypotheses'
    rows: int

    def logits(self) -> Float32[Tensor, "R V"]:
        """Return all logits."""
        return torch.from_numpy(self.output(self.features)[: self.rows])

    def best(
        self, totals: Float32[np.ndarray, "B H"], only: NDArray[np.int64], excluded: list[int], count: int
    ) -> tuple[Float32[np.ndarray, "B M"], Int64[np.ndarray, "B M"], Int64[np.ndarray, "B M"]]:
        """Return each sentence's best continuations: their log-likelihoods, rows and tokens."""
        sentences, beams = totals.shape
        entries = self.output.outputs
        values = np.empty((self.rows, min(count, entries)), np.float32)
        tokens = np.empty(values.shape, np.int64)
        normalizers = np.empty(self.rows, np.float32)
        size = max(32, NUMBERS_AT_ONCE // entries, min(FEW_ROWS, LARGE_BLOCK // entries))
        for start in range(0, self.rows, size):
            part = slice(start, start + size)
            product = self.output.product(self.features[part])
            run_on_arrays(
                decode_loops.find_likeliest, min(size, self.rows - start), product.numbers.size, *product,
                only[part], np.array(excluded), values[part], tokens[part], normalizers[part],
            )  # fmt: skip
        sums = np.empty((sentences, min(count, beams * values.shape[1])), np.float32)
        rows = np.empty(sums.shape, np.int64)
        chosen = np.empty(sums.shape, np.int64)
        run_on_arrays(
            decode_loops.choose, sentences, values.size, values, tokens, normalizers, totals, sums, rows,
            chosen,
        )  # fmt: skip
        return sums, rows, chosen


class EngineAttention:
    """One layer's attention, with its maps folded into the source."""

    def __init__(self, attention: MultistepAttention, precision: Precision | None) -> None:
        self.scale = np.float32(attention.scale)
        self.value_scale = np.float32(attention.scale * SQRT_HALF)
        self.key_map = fix_weights(attention.summary_map.weight.t() * attention.scale, None, precision)
        self.key_bias = attention.summary_map.bias.detach() * attention.scale
        self.context_map = fix_layer(attention.context_map, precision)
        self.memory_type = float_type(precision)

    def fold(
        self, z: Float32[np.ndarray, "P E"], values: Float32[np.ndarray, "P E"], positions: int
    ) -> LayerMemory:
        """Return what the layer sees of the source positions, which are the first rows."""
        offsets = as_array(torch.from_numpy(z[:positions]) @ self.key_bias)
        keys = torch.from_numpy(self.key_map(z)).to(self.memory_type)
        context = self.context_map(values)
        context *= self.value_scale
        return LayerMemory(
            as_array(keys), offsets, as_array(torch.from_numpy(context).to(self.memory_type)), self.scale
        )


class EngineBlock:
    """A block of the encoder or the decoder."""

    def __init__(self, block: nn.Module, precision: Precision | None) -> None:
        assert isinstance(block, EncoderBlock | DecoderBlock)
        self.kernel_width = block.convolution.kernel_width
        self.window_size = block.convolution.window_map.in_features
        self.window_map = fix_layer(block.convolution.window_map, precision)
        # Where the product would round its input, the window keeps rounded numbers.
        self.window_type = np.uint16 if precision == "bfloat16" else np.float32
        residual = block.residual.map
        self.residual_map = None if residual is None else fix_layer(residual, precision)
        attention = block.attention if isinstance(block, DecoderBlock) else None
        self.attention = None if attention is None else EngineAttention(attention, precision)

    def new_windows(self, rows: int) -> NDArray[Any]:
        """Return an array for windows."""
        return new_rows(rows, self.window_size, self.window_type)

    def adapt(self, x: Float32[np.ndarray, "P C"]) -> Float32[np.ndarray, "P D"]:
        """Return the block's input in the width of its output (T2)."""
        return x if self.residual_map is None else self.residual_map(x)

    def add_to_input(
        self, product: ScaledProduct, x: Float32[np.ndarray, "P C"], rows: int
    ) -> Float32[np.ndarray, "P D"]:
        """Return the output of a block without attention, from its convolution's product and its input x."""
        out = new_rows(rows, product.numbers.shape[1] // 2)
        run_on_arrays(decode_loops.add_glu, rows, product.numbers.size, *product, self.adapt(x), out)
        return out


class EngineStack:
    """The encoder or the decoder: blocks between two linear maps."""

    def __init__(self, stack: Encoder | Decoder, precision: Precision | None) -> None:
        self.input_map = fix_layer(stack.input_map, precision)
        self.blocks = [EngineBlock(block, precision) for block in stack.blocks]
        self.output_map = fix_layer(stack.output_map, precision)


class EngineEmbedding:
    """The embeddings of the words, and of the positions if the model has any."""

    def __init__(self, words: Tensor, positions: nn.Embedding | None) -> None:
        self.words = as_array(words)
        self.positions = None if positions is None else as_array(positions.weight.detach())

    def embed(
        self, tokens: Int64[np.ndarray, "R"], positions: Int64[np.ndarray, "R"] | int
    ) -> Float32[np.ndarray, "P E"]:
        """Return the embeddings of tokens at these positions, from 0, or all at one position."""
        rows = new_rows(len(tokens), self.words.shape[1])
        embedded = rows[: len(tokens)]
        embedded[:] = self.words[tokens]
        if self.positions is not None:
            embedded += self.positions[positions + 1]  # row 0 is for padding
        return rows


class EngineModel:
    """A model for beam search on a CPU, with the methods of `convs2s.search.stepwise_model.StepwiseModel`.

    Args:
        seq2seq: in eval mode, without weight norm; its weights must not change afterwards.
        precision: of products; None: float32, quick to build, for a few steps.
    """

    def __init__(self, seq2seq: Seq2Seq, precision: Precision | None) -> None:
        self.seq2seq = seq2seq
        self.precision = precision
        self.encoder = EngineStack(seq2seq.encoder, precision)
        self.encoder_scale = np.float32(seq2seq.encoder.scale)
        self.decoder = EngineStack(seq2seq.decoder, precision)
        self.attentions = [block.attention for block in self.decoder.blocks if block.attention is not None]
        output = seq2seq.output_layer
        source, target = seq2seq.source_embedding, seq2seq.target_embedding
        self.source_embedding = EngineEmbedding(source.words.weight.detach(), source.positions)
        self.target_embedding = EngineEmbedding(target.words.weight.detach(), target.positions)
        self.output_weights, self.output_biases = output.weight.detach(), output.bias.detach()
        self.max_source_tokens, self.max_target_tokens = seq2seq.max_source_tokens, seq2seq.max_target_tokens

    def restrict(self, tokens: Int[Tensor, "N"]) -> "EngineModel":
        """Return the same model over only these target tokens (§5.4); all other weights are shared."""
        model = copy.copy(self)
        model.target_embedding = copy.copy(self.target_embedding)
        model.target_embedding.words = self.target_embedding.words[tokens.numpy()]
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
        ids = source.numpy()
        real = ids != self.seq2seq.padding_id
        lengths = real.sum(axis=1)
        starts = lengths.cumsum() - lengths
        sentences, positions = real.nonzero()
        count = len(positions)
        e = self.source_embedding.embed(ids[sentences, positions], positions)
        x = self.encoder.input_map(e)
        for block in self.encoder.blocks:
            windows = block.new_windows(count)
            run_on_arrays(
                decode_loops.cut_windows, len(starts), windows.size, x, starts, lengths, block.kernel_width,
                windows,
            )  # fmt: skip
            x = block.add_to_input(block.window_map.product(windows), x, count)
        z = self.encoder.output_map(x)
        values = z + e
        # sqrt(m) restores the variance lost by averaging (§3.4).
        # PyTorch's root, as in the model: it is not always the nearest float32, NumPy's is.
        scales = torch.from_numpy(lengths).sqrt().numpy()
        values[:count] *= (self.encoder_scale * scales).repeat(lengths)[:, None]
        layers = tuple(
            None if block.attention is None else block.attention.fold(z, values, count)
            for block in self.decoder.blocks
        )
        z *= self.attentions[0].scale
        return EngineMemory(z, layers, starts, lengths, source.shape[1])

    def start(self, rows: int) -> EngineState:
        """Return the state before the first step, for `rows` hypotheses in total."""
        blocks = self.decoder.blocks
        windows = tuple(np.zeros((rows, block.window_size), block.window_type) for block in blocks)
        return EngineState(0, windows, np.arange(rows))

    def step(
        self, tokens: Int[Tensor, "R"], memory: EngineMemory, state: EngineState
    ) -> tuple[EngineScores, Float32[Tensor, "R S"], EngineState]:
        """Advance every hypothesis by one token; as `StepwiseModel.step`."""
        rows, sentences = len(tokens), len(memory.lengths)
        beams = rows // sentences
        starts, lengths = memory.starts, memory.lengths
        g = self.target_embedding.embed(tokens.numpy(), state.steps)
        shared = np.empty((rows, memory.width), np.float32)
        work = int(lengths.sum()) * beams * g.shape[1]
        run_on_arrays(decode_loops.match, sentences, work, g, memory.keys, starts, lengths, beams, shared)
        x = self.decoder.input_map(g)
        attention = np.zeros((rows, memory.width), np.float32)
        share = np.float32(1.0 / len(self.attentions))
        windows = []
        for block, old_window, layer in zip(self.decoder.blocks, state.windows, memory.layers, strict=True):
            window = block.new_windows(rows)
            run_on_arrays(decode_loops.shift_windows, rows, window.size, old_window, state.parents, x, window)
            windows.append(window)
            product = block.window_map.product(window)
            if layer is None:  # the block does not attend
                x = block.add_to_input(product, x, rows)
                continue
            out = new_rows(rows, product.numbers.shape[1] // 2)
            run_on_arrays(
                decode_loops.attend, sentences, 2 * work, *product, block.adapt(x), shared, layer.keys,
                layer.offsets, layer.values, starts, lengths, beams, layer.scale, share, attention, out,
            )  # fmt: skip
            x = out
        scores = EngineScores(self.output_map, self.decoder.output_map(x), rows)
        following = EngineState(state.steps + 1, tuple(windows), np.arange(rows))
        return scores, torch.from_numpy(attention), following


def new_rows(rows: int, columns: int, dtype: type[np.generic] = np.float32) -> NDArray[Any]:
    """Return an array for this many rows and, below them, the rows of zeros that `round_up` adds."""
    array = np.empty((round_up(rows), columns), dtype)
    array[rows:] = 0
    return array


def round_up(rows: int) -> int:
    """Return the number of rows with which products are computed, at most an eighth more.

    oneDNN compiles each product for its number of rows, which takes half a millisecond and half a MiB: with
    few numbers, most products have been compiled before.
    """
    step = 1 << max(0, rows.bit_length() - ROW_BITS)
    return -(-rows // step) * step
