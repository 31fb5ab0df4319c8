"""An update: gradients of a batch's parts, summed over workers, then one optimizer step (§4.2)."""

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from convs2s.train.recorded_updates import Ids
from convs2s.train.training import Loaded, Training, UpdateResult


def queue_update(
    training: Training, losses: nn.Module, loaded: Loaded, learning_rate: float
) -> Float[Tensor, "3"]:
    """Queue an update on the device; return loss and signals summed over workers, and the gradient norm."""
    workers, batch, updates = training.workers, loaded.batch, training.state.updates
    seed_dropout(training, batch.shares[0])  # here, as a recorded update has one share, and cannot
    # Backward averages over workers, but we want the sum over all tokens of the batch, divided by their
    # number (§4.2, T13).
    scale = workers.count / batch.target_tokens if batch.counted else 0.0
    if training.recorded is None:
        total, norm = make_update(training, losses, loaded, scale, learning_rate, updates)
    else:

        def make(parts: Sequence[Ids], numbers: Tensor) -> tuple[Tensor, Tensor]:
            same = dataclasses.replace(loaded, parts=[(*ids, None) for ids in parts])
            return make_update(training, losses, same, *numbers.unbind())

        numbers = training.to_device(np.array([scale, learning_rate, updates], np.float32))
        total, norm = training.recorded.make(make, [part[:2] for part in loaded.parts], numbers)
    # All workers must end after the same update, so they add up their signals. full_like fills a tensor
    # on the device; from a number, new_tensor would copy one there, for which the host waits.
    summed = workers.total(torch.stack([total, torch.full_like(total, len(training.signals))]))
    return torch.cat([summed, norm.double().reshape(1)])


def finish_update(
    training: Training, queued: Float[Tensor, "3"], loaded: Loaded, learning_rate: float
) -> UpdateResult:
    """Wait for an update and return its result; a FloatingPointError if its gradient is NaN or infinite."""
    loss, signals, norm = queued.tolist()  # the only point where the host waits for the device
    if not math.isfinite(norm):
        raise FloatingPointError(
            f"Training diverged: in update {training.state.updates + 1:,} (epoch "
            f"{len(training.state.epochs) + 1}, learning rate {learning_rate:g}) the gradient norm is "
            f"{norm}; expected a finite one. The update was not applied. Lower train.learning_rate, or check "
            "the data for damaged sentences."
        )
    selected = None if loaded.entries is None else len(loaded.entries)
    return UpdateResult(loss, norm, selected, signals > 0)


def make_update(
    training: Training,
    losses: nn.Module,
    loaded: Loaded,
    scale: Tensor | float,
    learning_rate: Tensor | float,
    updates: Tensor | int,
) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
    """Make an update; return the summed loss of this worker, and the gradient's norm.

    Args:
        scale: of the loss.
        updates: made before this one.
    """
    total = add_gradients(training, losses, loaded, scale)
    norm = training.optimizer.update(learning_rate, training.params.clip_norm, updates)
    return total, norm


def add_gradients(
    training: Training, losses: nn.Module, loaded: Loaded, scale: Tensor | float
) -> Float[Tensor, ""]:
    """Add up the gradients of this worker's parts of a batch; return the sum of their losses.

    The random numbers of the first part's share must have been seeded.
    """
    workers, device, shares = training.workers, training.workers.device, loaded.batch.shares
    half = training.state.precision == "bfloat16"
    total = torch.zeros((), dtype=torch.float64, device=device)
    for i, part in enumerate(loaded.parts, start=1):
        if i > 1 and shares[i - 1] != shares[i - 2]:
            seed_dropout(training, shares[i - 1])
        with workers.accumulate(losses, last=i == len(loaded.parts)):
            with torch.autocast(device.type, torch.bfloat16, enabled=half):
                loss, _ = losses(*part, loaded.entries)
            (loss * scale).backward()
        if loaded.batch.counted:
            total += loss.detach()
    return total


def seed_dropout(training: Training, share: int) -> None:
    """Seed the random numbers of a share of the next update.

    They depend only on these two and the training's seed, so that they are the same in any process.
    """
    seed = np.random.SeedSequence([training.seed, training.state.updates, share])
    torch.manual_seed(int(seed.generate_state(1, np.uint64)[0]))
