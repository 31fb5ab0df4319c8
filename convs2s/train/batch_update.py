"""An update: gradients of a batch's parts, summed over workers, then one optimizer step (§4.2)."""

import math
import os
from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from convs2s.text.corpus.batching import Batch
from convs2s.train.fast.recorded import SWITCH, CudaGraphs, RecordedUpdates, Recorder
from convs2s.train.fast.weights import weights_of_update
from convs2s.train.random_numbers import seed_generators
from convs2s.train.training import Done, Inputs, Training


def recorded_updates(training: Training, losses: nn.Module) -> RecordedUpdates | None:
    """Return an object that records and replays updates; None unless there is a single process with a GPU.

    The exchange between several processes during backward cannot be recorded. CONVS2S_RECORD=0 in the
    environment switches recording off.
    """
    alone_on_gpu = training.workers.device.type == "cuda" and training.workers.count == 1
    if not alone_on_gpu or os.environ.get(SWITCH) == "0":
        return None
    return static_updates(training, losses, CudaGraphs())


def static_updates(training: Training, losses: nn.Module, record: Recorder | None) -> RecordedUpdates:
    """Return an object that makes updates of few shapes; if `record` is None, it does not record them."""

    def update(source: Tensor, target: Tensor, real: Tensor, scale: Tensor, learning_rate: Tensor) -> Tensor:
        return _compute_update(training, losses, [(source, target, real)], None, scale, learning_rate)

    limits = training.model.max_source_tokens, training.model.max_target_tokens
    return RecordedUpdates(update, training.workers.device, limits, record)


def make_update(
    training: Training,
    losses: nn.Module,
    batch: Batch,
    learning_rate: float,
    recorded: RecordedUpdates | None = None,
) -> Done:
    """Process a batch's parts, then make one update."""
    entries = training.entries(training.train, batch)
    results = queue_update(training, losses, batch, entries, learning_rate, recorded)
    loss, norm = results.tolist()  # the only point where the host waits for the device
    if not math.isfinite(norm):
        raise FloatingPointError(
            f"Training diverged: in update {training.state.updates + 1:,} (epoch "
            f"{len(training.state.epochs) + 1}, learning rate {learning_rate:g}) the gradient norm is "
            f"{norm}; wanted a finite one. The update was not applied. Lower train.learning_rate, or check "
            "the data for damaged sentences."
        )
    return Done(loss, norm, None if entries is None else len(entries))


def queue_update(
    training: Training,
    losses: nn.Module,
    batch: Batch,
    entries: Tensor | None,
    learning_rate: float,
    recorded: RecordedUpdates | None = None,
) -> Float[Tensor, "2"]:
    """Queue an update on the device; return the loss summed over workers, and the gradient norm."""
    workers = training.workers
    seed = np.random.SeedSequence([training.seed, training.state.updates, workers.rank])
    number = int(seed.generate_state(1, np.uint64)[0])
    # Backward averages over workers, but we want the sum over all tokens of the batch, divided by their
    # number (§4.2, T13).
    scale = workers.count / batch.target_tokens
    if recorded is not None and entries is None and len(batch.parts) == 1:
        return recorded(*training.train.arrays(batch.parts[0]), scale, learning_rate, number)

    def compute() -> Tensor:
        seed_generators(number)
        parts = [training.inputs(training.train, part) for part in batch.parts]
        counted_scale = scale if batch.counted else 0.0
        return _compute_update(training, losses, parts, entries, counted_scale, learning_rate)

    return compute() if recorded is None else recorded.make_way_for(compute)


def _compute_update(
    training: Training,
    losses: nn.Module,
    parts: Sequence[Inputs],
    entries: Tensor | None,
    scale: Tensor | float,
    learning_rate: Tensor | float,
) -> Float[Tensor, "2"]:
    """Make an update from tensors on the device; return the loss summed over workers, and the gradient norm.

    Args:
        scale: factor of the loss, before backward; the number 0 for a batch that does not count.
    """
    try:
        total = _add_gradients(training, losses, parts, entries, scale)
        norm = training.optimizer.update(learning_rate, training.clip_norm)
        return torch.stack([training.workers.total(total), norm.double()])
    except RuntimeError:
        training.optimizer.clear_gradients()  # a retry must not find partial gradients
        raise


def _add_gradients(
    training: Training,
    losses: nn.Module,
    parts: Sequence[Inputs],
    entries: Tensor | None,
    scale: Tensor | float,
) -> Float[Tensor, ""]:
    """Add up the gradients of all parts; return the sum of this worker's losses."""
    workers, device = training.workers, training.workers.device
    total = torch.zeros((), dtype=torch.float64, device=device)
    with weights_of_update(training.model, training.precision, len(parts)):
        for i, inputs in enumerate(parts, start=1):
            with workers.accumulate(losses, last=i == len(parts)):
                with torch.autocast(
                    device.type, torch.bfloat16, enabled=training.precision == torch.bfloat16
                ):
                    loss, _ = losses(*inputs, entries)
                (loss * scale).backward()
            if isinstance(scale, Tensor) or scale:
                total += loss.detach()
    return total
