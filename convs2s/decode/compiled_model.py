"""The fast model with its steps in compiled loops, which pay off once a text is long enough.

The source positions of all sentences are contiguous in memory, without padding, and stay in place when
sentences leave the batch. Hypotheses are reordered when the next windows are written. Everything between
products is float32. Results equal those of `FastModel` up to rounding.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float32, Int, Int64
from numpy.typing import NDArray
from torch import Tensor, nn

from convs2s.decode.fast_model import AttentionFolder, FastModel
from convs2s.decode.int8_linear import Int8Linear, Product
from convs2s.decode.packed_linear import FixedLinear
from convs2s.decode.stepwise_model import StepwiseModel
from convs2s.decode.token_scores import ANY, NOT_EOS
from convs2s.engine import decode_loops
from convs2s.engine.loops import as_array, run_loop
from convs2s.model.decoder import DecoderBlock
from convs2s.model.glu_block import EncoderBlock
from convs2s.text.vocabulary.vocabulary import EOS, PAD

assert (PAD, EOS) == (decode_loops.PAD, decode_loops.EOS)
assert (ANY, NOT_EOS) == (decode_loops.ANY, decode_loops.NOT_EOS)
NUMBERS_AT_ONCE = 1 << 19
"""Scores of the output layer that are computed before they are read, few enough to stay in cache."""


@dataclass(frozen=True)
class FlatAttention:
    """What one layer sees of the N source positions of all sentences; like `FoldedAttention`.

    Keys and values are bfloat16, stored as uint16, unless products are float32: reading them takes the most
    time.
    """

    keys: NDArray[Any]
    offsets: Float32[np.ndarray, "N"]
    values: NDArray[Any]


@dataclass(frozen=True)
class FlatMemory:
    """What the decoder sees of a batch of sentences.

    Attributes:
        keys: z, scaled like d.
        layers: one for each block that attends, bottom first.
        starts: the first position of each sentence.
        lengths: the number of positions of each sentence, EOS included.
        width: the number of positions of the longest sentence.
    """

    keys: Float32[Tensor, "N E"]
    layers: tuple[FlatAttention, ...]
    starts: Int64[Tensor, "B"]
    lengths: Int64[Tensor, "B"]
    width: int

    def select(self, sentences: Int[Tensor, "R"]) -> "FlatMemory":
        """Return the memory of these sentences, in this order; nothing is copied."""
        return replace(self, starts=self.starts[sentences], lengths=self.lengths[sentences])


@dataclass(frozen=True)
class WindowState:
    """What the decoder remembers between steps.

    Attributes:
        steps: tokens decoded so far, the same for all rows.
        windows: for each layer, the inputs of the last K steps, oldest first; zeros at the start.
        parents: for each hypothesis, its row in the windows.
    """

    steps: int
    windows: tuple[Float32[Tensor, "P _"], ...]
    parents: Int64[Tensor, "R"]

    def select(self, rows: Int[Tensor, "N"]) -> "WindowState":
        """Return the state of these rows, in this order; the windows follow with the next step."""
        return replace(self, parents=self.parents[rows])


@dataclass(frozen=True)
class Scores:
    """The scores of the next token, computed on demand.

    Attributes:
        output: the output layer.
        features: its input.
    """

    output: FixedLinear
    features: Float32[Tensor, "R F"]

    @property
    def size(self) -> int:
        """Number of logits per row."""
        return self.output.outputs

    def logits(self) -> Float32[Tensor, "R V"]:
        """Return all logits."""
        return product(self.output, self.features).result()

    def likeliest(
        self, allowed: NDArray[np.int64], count: int
    ) -> tuple[Float32[Tensor, "R N"], Int64[Tensor, "R N"], Float32[Tensor, "R"]]:
        """Return each row's largest allowed logits, their tokens, and the normalizer; as `LazyScores`."""
        rows = len(self.features)
        values, tokens = torch.empty(rows, count), torch.empty(rows, count, dtype=torch.int64)
        normalizers = torch.empty(rows)
        size = max(32, NUMBERS_AT_ONCE // self.size)
        for start in range(0, rows, size):
            part = slice(start, min(start + size, rows))
            found = product(self.output, self.features[part])
            run_loop(
                decode_loops.likeliest, len(found.numbers), found.numbers.numel(), *found.parts,
                allowed[part], values[part], tokens[part], normalizers[part],
            )  # fmt: skip
        return values, tokens, normalizers


class CompiledModel(StepwiseModel):
    """A fast model with compiled loops between the products; it shares that model's weights."""

    def __init__(self, model: FastModel) -> None:
        self.model, self.seq2seq = model, model.seq2seq
        self.embeddings, self.output_biases = model.embeddings, model.output_biases
        self.output_weights = model.output_weights

    def restricted(self, tokens: Int[Tensor, "N"]) -> "CompiledModel":
        """Return the same model over only these target tokens; as `StepwiseModel.restricted`."""
        return CompiledModel(self.model.restricted(tokens))

    def encode(self, source: Int[Tensor, "B S"]) -> Any:
        """Encode source sentences, each ending in EOS, then padded."""
        seq2seq = self.seq2seq
        real = source != seq2seq.padding_id
        lengths = real.sum(dim=1)
        starts = lengths.cumsum(dim=0) - lengths
        e = self._embed_source(source, real)
        encoder = seq2seq.encoder
        x = result(encoder.input_map, e)
        for block in encoder.blocks:
            assert isinstance(block, EncoderBlock)
            x = encoder_block(block, x, starts, lengths)
        z = result(encoder.output_map, x)
        # sqrt(m) restores the variance lost by averaging (§3.4).
        values = (z + e).mul_(encoder.scale * lengths.sqrt().repeat_interleave(lengths)[:, None])
        folders = [folder for folder in self.model.folders if folder is not None]
        layers = tuple(fold(folder, z, values) for folder in folders)
        return FlatMemory(z.mul_(folders[0].scale), layers, starts, lengths, source.shape[1])

    def _embed_source(self, source: Int[Tensor, "B S"], real: Tensor) -> Float32[Tensor, "N E"]:
        embedding = self.seq2seq.source_embedding
        e: Tensor = embedding.words(source[real]).float()
        if embedding.positions is not None:
            positions = torch.arange(1, source.shape[1] + 1).expand_as(source)[real]
            e = e + embedding.positions(positions).float()
        return e

    def start(self, rows: int) -> Any:
        """Return the state before the first step, for `rows` hypotheses in total."""
        windows = (
            torch.zeros(rows, block.convolution.kernel_width * block.inputs)
            for block in self.seq2seq.decoder.layers()
        )
        return WindowState(0, tuple(windows), torch.arange(rows))

    def step(
        self, tokens: Int[Tensor, "R"], memory: Any, state: Any
    ) -> tuple[Any, Float32[Tensor, "R S"], Any]:
        """Advance every hypothesis by one token; as `StepwiseModel.step`."""
        decoder, rows, sentences = self.seq2seq.decoder, len(tokens), len(memory.lengths)
        g = self._embed(tokens, state.steps, sentences).flatten(0, 1).float()
        shared, attention = torch.empty(rows, memory.width), torch.zeros(rows, memory.width)
        sources = memory.starts.numpy(), memory.lengths.numpy(), rows // sentences
        work = int(memory.lengths.sum()) * sources[2] * g.shape[1]
        run_loop(decode_loops.match, sentences, work, g, memory.keys, *sources, shared)
        x, waiting, windows = result(decoder.input_map, g), iter(memory.layers), []
        parents, share = state.parents.numpy(), np.float32(1.0 / len(memory.layers))
        for block, folder, old in zip(decoder.layers(), self.model.folders, state.windows, strict=True):
            window = torch.empty(rows, old.shape[1])
            run_loop(decode_loops.target_windows, rows, window.numel(), old, parents, x, window)
            windows.append(window)
            found = product(block.convolution.window_map, window)
            if folder is None:
                x = glu_and_residual(block, found, x)
                continue
            x = x if block.residual.map is None else result(block.residual.map, x)
            layer, out = next(waiting), torch.empty(rows, found.numbers.shape[1] // 2)
            run_loop(
                decode_loops.attend, sentences, 2 * work, *found.parts, x, shared, layer.keys, layer.offsets,
                layer.values, *sources, np.float32(folder.scale), share, attention, out,
            )  # fmt: skip
            x = out
        features = result(decoder.output_map, x)
        scores = Scores(self.model.output, features)
        return scores, attention, WindowState(state.steps + 1, tuple(windows), torch.arange(rows))


def encoder_block(block: EncoderBlock, x: Tensor, starts: Tensor, lengths: Tensor) -> Tensor:
    """Return a block's output for the source positions (N, C) of all sentences."""
    width = block.convolution.kernel_width
    windows = torch.empty(len(x), width * x.shape[1])
    run_loop(decode_loops.source_windows, len(starts), windows.numel(), x, starts, lengths, width, windows)
    return glu_and_residual(block, product(block.convolution.window_map, windows), x)


def glu_and_residual(block: EncoderBlock | DecoderBlock, found: Product, x: Tensor) -> Tensor:
    """Return the output of a block without attention, from its convolution's product and its input x."""
    x = x if block.residual.map is None else result(block.residual.map, x)
    out = torch.empty(len(x), found.numbers.shape[1] // 2)
    run_loop(decode_loops.glu_and_residual, len(x), found.numbers.numel(), *found.parts, x, out)
    return out


def fold(folder: AttentionFolder, z: Tensor, values: Tensor) -> FlatAttention:
    """Return what a layer sees of the source positions; like `AttentionFolder.fold`."""
    offsets = as_array(z @ folder.key_bias.float())
    keys, context = result(folder.key_map, z), result(folder.context_map, values).mul_(folder.value_scale)
    kind = torch.float32 if is_float32(folder.key_map) else torch.bfloat16
    return FlatAttention(as_array(keys.to(kind)), offsets, as_array(context.to(kind)))


def is_float32(linear: nn.Module) -> bool:
    """Return whether a linear map's products are float32."""
    assert isinstance(linear, FixedLinear)
    return linear.dtype == torch.float32 and not isinstance(linear, Int8Linear)


def product(linear: nn.Module, x: Float32[Tensor, "R K"]) -> Product:
    """Apply a linear map of any kind to some rows."""
    assert isinstance(linear, FixedLinear)
    if isinstance(linear, Int8Linear):
        return linear.product(x)
    numbers = linear(x.to(linear.dtype))
    ones, zeros = np.ones(linear.outputs, np.float32), np.zeros(linear.outputs, np.float32)
    return Product(numbers, torch.ones(len(x)), ones, zeros)


def result(linear: nn.Module, x: Float32[Tensor, "R K"]) -> Float32[Tensor, "R N"]:
    """Apply a linear map to some rows; return float32."""
    assert isinstance(linear, FixedLinear)
    y: Tensor = linear(x.to(linear.dtype))
    return y.float()
