"""The model that searches: the plain one or, on a CPU, the engine's if it computes the same.

When a model is loaded, a few random tokens go through it in one pass, as in training, and again step by step,
as in search. Sentences of odd lengths are padded, and hypotheses change places between steps, so that
positions, padding, attention and windows all count.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves

from convs2s.base.messages import is_out_of_memory
from convs2s.decode.search import SearchModel
from convs2s.decode.stepwise_model import StepwiseModel
from convs2s.decode.token_scores import all_logits
from convs2s.engine.agreement import (
    TOLERANCE,
    VARIABLE,
    describe_difference,
    is_engine_wanted,
    relative_difference,
    warn_of_difference,
)
from convs2s.ids.vocabulary import EOS, UNK
from convs2s.model.precision import Precision, Wanted, choose_precision
from convs2s.model.seq2seq import Seq2Seq, average_attention

LENGTHS = (2, 5)
"""Source tokens of each sentence of the sample, EOS included."""
BEAMS = 2
"""Hypotheses of each sentence."""
STEPS = 3
MOST_STEPS = 8
"""Least and most tokens of a hypothesis; in between, as many as the widest kernel has inputs."""
ENTRIES = 64
"""Target entries that are scored; all of them would take most of the time."""
TOLERANCE_OF_STEPS = 0.01
"""The tolerance for the plain model, as other devices may round more than a CPU; beyond it is an error."""
NAMED = 3
"""Most weights that a message names."""


class Sample:
    """Random tokens that fit a model, and what it computes for them in one pass.

    Raises:
        ValueError: if there are weights that this pass does not read.
    """

    def __init__(self, seq2seq: Seq2Seq) -> None:
        device = seq2seq.output_layer.bias.device
        draw = torch.Generator().manual_seed(1)
        source_size = seq2seq.source_embedding.words.num_embeddings
        target_size = seq2seq.target_embedding.words.num_embeddings
        lengths = [min(length, seq2seq.max_source_tokens or length) for length in LENGTHS]
        source = torch.full((len(lengths), max(lengths)), seq2seq.padding_id)
        for row, length in enumerate(lengths):
            source[row, : length - 1] = torch.randint(UNK, source_size, (length - 1,), generator=draw)
            source[row, length - 1] = EOS
        widest = max(block.convolution.kernel_width for block in seq2seq.decoder.layers())
        steps = min(max(STEPS, widest), MOST_STEPS, seq2seq.max_target_tokens or MOST_STEPS)
        entries = torch.randint(UNK, target_size, (ENTRIES,), generator=draw)
        self.entries = torch.cat([torch.tensor([EOS]), entries]).unique().to(device)
        places = torch.randint(1, len(self.entries), (len(lengths) * BEAMS, steps), generator=draw)
        places[:, 0] = 0  # EOS, with which a target begins (T19)
        self.source = source.to(device)
        self.places = places.to(device)
        with torch.inference_mode(), check_reads(seq2seq):
            features, attention, _ = seq2seq.features(self.entries[self.places], seq2seq.encode(self.source))
            self.logits = F.linear(features, *seq2seq.output_rows(self.entries)).float()
            self.attention = average_attention(attention).float()

    @torch.inference_mode()
    def find_fault(self, model: SearchModel, tolerance: float = TOLERANCE) -> str | None:
        """Return how a model differs from the pass, step by step; None if only by rounding."""
        logits, attention = self.run(model.restrict(self.entries))  # in any case, for `Reads`
        if not self.logits.isfinite().all():
            return None  # search will say that the weights are damaged
        compared = {
            "logits": relative_difference(self.logits, logits),
            "attention weights": relative_difference(self.attention, attention),
        }
        faults = (describe_difference(name, size, tolerance) for name, size in compared.items())
        return next(filter(None, faults), None)

    def run(self, model: SearchModel) -> tuple[Float[Tensor, "R T V"], Float[Tensor, "R T S"]]:
        """Return logits and attention, step by step."""
        logits = torch.empty_like(self.logits)
        attention = torch.empty_like(self.attention)
        rows = torch.arange(len(self.places), device=self.places.device)
        swapped = rows.view(-1, BEAMS).flip(1).flatten()
        memory = model.encode(self.source)
        state = model.start(len(rows))
        for step in range(self.places.shape[1]):
            scores, weights, state = model.step(self.places[rows, step], memory, state)
            logits[rows, step] = all_logits(scores)
            attention[rows, step] = weights.float()
            rows = rows[swapped]
            state = state.select(swapped)
        return logits, attention


@contextmanager
def check_reads(seq2seq: Seq2Seq) -> Iterator[None]:
    """Raise a ValueError if there are weights that nothing inside the context reads."""
    with Reads(seq2seq) as reads:
        yield
    if reads.unread:
        raise ValueError(
            f"expected decoding to read all weights, found {reads.describe_unread()}, which it does not "
            "read, so that translations would not be the trained model's. Read them in Seq2Seq.encode, "
            "features or output_rows (convs2s/model/seq2seq.py), or train without them."
        )


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
    sample = Sample(seq2seq)
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
    seq2seq: Seq2Seq, precision: Precision, sample: Sample
) -> tuple[SearchModel | None, str | None]:
    """Return the engine's model, or else how it differs from the plain one by more than rounding.

    Narrower products round more than some edits change, so the formulas are compared in float32.
    """
    try:
        from convs2s.engine.decode.model import EngineModel  # noqa: PLC0415  # imports numba

        with Reads(seq2seq) as reads:
            exact = EngineModel(seq2seq, "float32" if precision == "float32" else None)
            fault = sample.find_fault(exact)
    except Exception as error:  # whatever an edit has led to
        if is_out_of_memory(error):
            raise
        return None, f"it ends in {type(error).__name__}: {error}"
    if reads.unread:
        fault = f"it does not read {reads.describe_unread()}"
    if fault is not None:
        return None, fault
    return exact if precision == "float32" else EngineModel(seq2seq, precision), None
