"""The model that searches: the plain one or, on a CPU, the engine's if it computes the same.

When a model is loaded, random tokens go through it in one pass, as in training, and again step by step, as in
search: through the engine's copy of it or, where there is none, through the model itself. An edit of the
model may act in some places only, so the sample has

1. a padded batch of very different lengths, down to EOS alone, for many steps. Hypotheses change places after
   each of them, and sentences leave the batch, the longest neither first nor last;
2. a sentence alone, without padding, as long as the position table allows, whose steps jump to the position
   table's last row.

The work is bounded, so larger models have fewer and shorter ones: with the paper's largest model (92 million
weights in encoder and decoder), sources have up to 40 tokens, 10 in the padded batch, and the steps are those
of positions 1 to 3 and of the last. Edits that act only in between, or only on longer sources, are not seen
there.
"""

import copy
import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves

from convs2s.base.messages import is_out_of_memory
from convs2s.engine.agreement import (
    TOLERANCE,
    VARIABLE,
    describe_difference,
    difference_of_rows,
    is_engine_wanted,
    relative_difference,
    warn_of_difference,
)
from convs2s.ids.vocabulary import EOS, UNK
from convs2s.model.precision import Precision, Wanted, choose_precision
from convs2s.model.seq2seq import Seq2Seq, average_attention
from convs2s.search.search import SearchModel
from convs2s.search.stepwise_model import StepwiseModel
from convs2s.search.token_scores import all_logits

ENCODER_WORK, DECODER_WORK = 750_000_000, 30_000_000
"""Weights of the encoder times tokens of the longest source; weights of the decoder times steps."""
SOURCE_TOKENS = (40, 1023)
"""Least and most tokens of the longest source, if the position table allows them."""
PADDED_TOKENS = 48
"""Most tokens of the longest source of the padded batch."""
STEPS = (3, 8)
"""Least and most steps in a row; at least as many as the widest kernel has inputs, up to eight."""
ENTRIES = 64
"""Target entries that are scored; all of them would take most of the time."""
TOLERANCE_OF_STEPS = 0.01
"""The tolerance for the plain model, as other devices may round more than a CPU; beyond it is an error."""
ROUNDING = 8
"""How many times as far from float64 as the plain model's a copy's results may be, to be called rounding."""
NAMED = 3
"""Most weights that a message names."""


@dataclass(frozen=True)
class SampleBatch:
    """Sentences of the sample.

    Attributes:
        source: ids.
        places: the target tokens of R = B * H hypotheses, as places in the sample's entries.
        positions: of these tokens.
        stay: steps after which every other sentence leaves.
    """

    source: Int[Tensor, "B S"]
    places: Int[Tensor, "R T"]
    positions: Sequence[int]
    stay: int


class StepOutput(NamedTuple):
    """What a step gives for some rows of a batch."""

    rows: Int[Tensor, "N"]
    logits: Float[Tensor, "N V"]
    attention: Float[Tensor, "N S"]

    def select(self, rows: Int[Tensor, "M"]) -> "StepOutput":
        """Return what a step of all rows gives for these."""
        return StepOutput(rows, self.logits[rows], self.attention[rows])

    def differences(self, expected: "StepOutput") -> tuple[float, float]:
        """Return how far logits and attention are from those of a step of all rows."""
        expected = expected.select(self.rows)
        return (
            difference_of_rows(expected.logits, self.logits),
            difference_of_rows(expected.attention, self.attention),
        )


class TokenSample:
    """Random tokens that fit a model, and what it computes for them.

    Raises:
        ValueError: if there are weights that a pass does not read.
    """

    def __init__(self, seq2seq: Seq2Seq) -> None:
        self.seq2seq = seq2seq
        self.device = seq2seq.output_layer.bias.device
        self.draw = torch.Generator().manual_seed(1)
        entries = torch.randint(
            UNK, seq2seq.target_embedding.words.num_embeddings, (ENTRIES,), generator=self.draw
        )
        self.entries = torch.cat([torch.tensor([EOS, UNK]), entries]).unique().to(self.device)
        widest = max(block.convolution.kernel_width for block in seq2seq.decoder.layers())
        steps = max(afford(DECODER_WORK, seq2seq.decoder, *STEPS), min(widest, 8))
        self.steps = min(steps, seq2seq.max_target_tokens or steps)
        longest = afford(ENCODER_WORK, seq2seq.encoder, *SOURCE_TOKENS)
        padded = min(longest // 4, PADDED_TOKENS)
        last = (seq2seq.max_target_tokens or SOURCE_TOKENS[1]) - 1
        late = np.geomspace(last, min(self.steps, last), max(1, self.steps // 4)).round().astype(int)
        self.padded = self._draw_batch([5, padded, 1, padded // 3], 2, range(self.steps), self.steps // 3)
        self.alone = self._draw_batch([longest], 1, [0, *sorted(set(late.tolist()))], self.steps)
        with torch.inference_mode(), Reads(seq2seq) as reads:
            self.expected = [(batch, self._expect(batch)) for batch in (self.alone, self.padded)]
        if reads.unread:
            raise ValueError(
                f"expected decoding to read all weights, found {reads.describe_unread()}, which it does not "
                "read, so that translations would not be the trained model's. Read them in Seq2Seq.encode, "
                "features or output_rows (convs2s/model/seq2seq.py), or train without them."
            )

    def _draw_batch(
        self, lengths: Sequence[int], beams: int, positions: Sequence[int], stay: int
    ) -> SampleBatch:
        """Return sources of about these lengths, EOS included, and `beams` hypotheses for each."""
        size = self.seq2seq.source_embedding.words.num_embeddings
        most = self.seq2seq.max_source_tokens or max(lengths)
        lengths = [min(length, most) for length in lengths]
        source = torch.full((len(lengths), max(lengths)), self.seq2seq.padding_id)
        for row, length in enumerate(lengths):
            source[row, :length] = torch.randint(UNK, size, (length,), generator=self.draw)
            source[row, length // 2] = UNK
            source[row, length - 1] = EOS
        shape = len(lengths) * beams, len(positions)
        places = torch.randint(1, len(self.entries), shape, generator=self.draw)
        places[:, -1] = 1  # <unk>
        if positions[0] == 0:
            places[:, 0] = 0  # EOS, with which a target begins (T19)
        return SampleBatch(source.to(self.device), places.to(self.device), positions, stay)

    def _expect(self, batch: SampleBatch) -> list[StepOutput]:
        """Return what one pass computes; from where the positions jump, what a first step there does."""
        memory = self.seq2seq.encode(batch.source)
        plain = StepwiseModel(self.seq2seq, self.entries)
        rows = torch.arange(len(batch.places), device=self.device)
        passed = sum(position == step for step, position in enumerate(batch.positions))
        features, attention, _ = self.seq2seq.features(self.entries[batch.places[:, :passed]], memory)
        logits = F.linear(features, plain.output_weights, plain.output_biases).float()
        weights = average_attention(attention).float()
        steps = [StepOutput(rows, logits[:, step], weights[:, step]) for step in range(passed)]
        for step, position in enumerate(batch.positions[passed:], passed):
            state = replace(plain.start(len(rows)), steps=position)
            late_logits, late_weights, _ = plain.step(batch.places[:, step], memory, state)
            steps.append(StepOutput(rows, late_logits, late_weights.float()))
        return steps

    @torch.inference_mode()
    def find_fault(self, model: SearchModel, tolerance: float = TOLERANCE) -> str | None:
        """Return how a model differs from what is expected, step by step; None if only by rounding."""
        faults = (self._compare(model, number, tolerance) for number in range(len(self.expected)))
        return next(filter(None, faults), None)

    @torch.inference_mode()
    def find_output_fault(self) -> str | None:
        """Return how the output layer for all entries, which a copy reads, differs from that for some."""
        pairs = zip(self.seq2seq.output_rows(self.entries), self.seq2seq.output_rows(None), strict=True)
        difference = max(relative_difference(some, every[self.entries]) for some, every in pairs)
        return describe_difference("weights of the softmax layer for all entries", difference)

    @cached_property
    def _exact(self) -> "TokenSample | None":
        """The same in float64; None where an edit computes in float32 whatever the type of the weights."""
        try:
            return TokenSample(copy.deepcopy(self.seq2seq).double())
        except RuntimeError:
            return None

    def _compare(self, model: SearchModel, number: int, tolerance: float) -> str | None:
        """Return how a model's steps differ from those expected of one of the batches."""
        batch, expected = self.expected[number]
        steps = zip(expected, run(model.restrict(self.entries), batch), strict=True)
        for step, (one, found) in enumerate(steps):
            if not one.logits.isfinite().all():
                continue  # search will say that the weights are damaged
            logits, attention = found.differences(one)
            fault = describe_difference("logits", logits, tolerance)
            fault = fault or describe_difference("attention weights", attention, tolerance)
            if fault is not None and not self._is_rounding(number, step, found):
                return fault
        return None

    def _is_rounding(self, number: int, step: int, found: StepOutput) -> bool:
        """Return whether a step is as far from that of float64 as that of the plain model is.

        A model may enlarge rounding without bound, for example if its attention is sharp.
        """
        if self._exact is None:
            return False
        exact = self._exact.expected[number][1][step]
        plain = self.expected[number][1][step].select(found.rows)
        limits = [ROUNDING * difference for difference in plain.differences(exact)]
        return all(map(operator.le, found.differences(exact), limits))


def afford(work: int, stack: nn.Module, least: int, most: int) -> int:
    """Return how many tokens can go through a stack with this much work."""
    weights: int = sum(tensor.numel() for tensor in stack.state_dict().values())
    return min(max(least, work // weights), most)


def run(model: SearchModel, batch: SampleBatch) -> Iterator[StepOutput]:
    """Yield what each step of a model gives; in between, hypotheses change places and sentences leave.

    Where positions jump, nothing but their number is known of the tokens before.
    """
    beams = len(batch.places) // len(batch.source)
    rows = torch.arange(len(batch.places), device=batch.source.device)
    memory = model.encode(batch.source)
    state = model.start(len(rows))
    for step, position in enumerate(batch.positions):
        if position != step:
            state = replace(model.start(len(rows)), steps=position)
        scores, weights, state = model.step(batch.places[rows, step], memory, state)
        yield StepOutput(rows, all_logits(scores).float(), weights.float())
        order = torch.arange(len(rows), device=rows.device).view(-1, beams).flip(1)
        if (step + 1) % batch.stay == 0 and len(order) > 1:
            order = order[1::2]
            memory = memory.select(torch.arange(1, len(rows) // beams, 2, device=rows.device))
        rows = rows[order.flatten()]
        state = state.select(order.flatten())


class Reads(TorchFunctionMode):
    """Notes which weights of a model are read.

    Attributes:
        unread: names of the weights that have not been read.
    """

    def __init__(self, seq2seq: Seq2Seq) -> None:
        super().__init__()
        tensors = [*seq2seq.named_parameters(), *seq2seq.named_buffers()]
        # Integers are not trained: a batch norm counts batches, which only training reads.
        self.names = {id(tensor): name for name, tensor in tensors if tensor.is_floating_point()}
        self.unread = set(self.names.values())

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        for value in tree_leaves((args, kwargs)):
            self.unread.discard(self.names.get(id(value), ""))
        return function(*args, **(kwargs or {}))

    def describe_unread(self) -> str:
        """Return the names of weights that were not read, at most three, and the number of the others."""
        names = sorted(self.unread)
        others = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        return ", ".join(names[:NAMED]) + others


def choose_model(seq2seq: Seq2Seq, wanted: Wanted, device: torch.device) -> SearchModel:
    """Return the model to search with: on a CPU the engine's, if it agrees, else the plain one.

    Raises:
        ValueError: for int8 without the engine, or if the plain model itself differs from what was trained:
            step by step it computes something else than in one pass, or it does not read all weights.
    """
    precision = choose_precision(wanted, device).precision
    if precision == "int8" and device.type != "cpu":
        raise ValueError(
            f"precision int8 is for CPUs, but the device is {device}. Choose auto, or the device cpu."
        )
    sample = TokenSample(seq2seq)
    if device.type == "cpu" and is_engine_wanted():
        model, fault = build_engine(seq2seq, precision, sample)
        if model is not None:
            return model
        place = "convs2s/engine/decode/model.py"
        warn_of_difference("The CPU's fast decoder", place, "convs2s/model", str(fault))
    if precision == "int8":
        raise ValueError(
            f"precision int8 is the fast decoder's, which is not used here ({VARIABLE}, or the warning "
            "above). Choose auto."
        )
    plain = StepwiseModel(seq2seq)
    if fault := sample.find_fault(plain, TOLERANCE_OF_STEPS):
        raise ValueError(
            "expected the decoder to compute the same position by position as in one pass, found that "
            f"{fault}. A layer that looks at more than the last inputs of its window needs them in "
            "DecoderState (convs2s/model/decoder.py); see docs/change-the-model.md."
        )
    return StepwiseModel(seq2seq.to(torch.bfloat16)) if precision == "bfloat16" else plain


def build_engine(
    seq2seq: Seq2Seq, precision: Precision, sample: TokenSample
) -> tuple[SearchModel | None, str | None]:
    """Return the engine's model, or else how it differs from the plain one by more than rounding.

    Narrower products round more than some edits change, so the formulas are compared in float32.
    """
    try:
        from convs2s.engine.decode.model import EngineModel  # noqa: PLC0415  # imports numba

        with Reads(seq2seq) as reads:
            exact = EngineModel(seq2seq, "float32" if precision == "float32" else None)
            fault = sample.find_fault(exact)
        fault = fault or sample.find_output_fault()
    except Exception as error:  # whatever an edit has led to
        if is_out_of_memory(error):
            raise
        return None, f"it ends in {type(error).__name__}: {error}"
    if reads.unread:
        fault = f"it does not read {reads.describe_unread()}"
    if fault is not None:
        return None, fault
    return exact if precision == "float32" else EngineModel(seq2seq, precision), None
