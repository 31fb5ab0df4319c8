"""An update: gradients of a batch's parts, summed over workers, then one optimizer step (§4.2)."""

import dataclasses
import functools
import math
import warnings
from collections.abc import Callable, Sequence

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from convs2s.base.messages import is_out_of_memory
from convs2s.train.choose_layers import use_parts
from convs2s.train.loss_in_parts import LossInParts
from convs2s.train.recorded_updates import Ids, RecordedUpdates
from convs2s.train.training import Loaded, Training, UpdateResult


def queue_update(
    training: Training, losses: nn.Module, loaded: Loaded, learning_rate: float
) -> Float[Tensor, "3"]:
    """Queue an update on the device; return loss and signals summed over workers, and the gradient norm.

    If memory runs out, which is before weights are changed, the update is made again with what takes less, if
    there is anything left to try.
    """
    try:
        return try_to_queue(training, losses, loaded, learning_rate)
    except RuntimeError as error:
        take_less = find_what_takes_less(training) if is_out_of_memory(error) else None
        if take_less is None:
            raise
    # Not in the handler, where the error holds the tensors of the update.
    training.optimizer.clear_gradients()
    take_less()
    torch.cuda.empty_cache()  # cuBLAS cannot take what PyTorch keeps
    return queue_update(training, losses, loaded, learning_rate)


def find_what_takes_less(training: Training) -> Callable[[], None] | None:
    """Return what makes the next updates take less memory; None if there is nothing left.

    With several workers there is nothing, as the others wait for the gradients of this one.
    """
    recorded, softmax = training.recorded, training.softmax
    if training.workers.count > 1:
        return None
    if recorded is not None and recorded.take_memory:
        return functools.partial(stop_recording, training.workers.device, recorded)
    if isinstance(softmax, LossInParts) and not softmax.is_used and softmax.most_parts > 1:
        return functools.partial(use_parts, training, softmax)
    return None


def stop_recording(device: torch.device, recorded: RecordedUpdates) -> None:
    """Drop the recorded updates, and say so."""
    recorded.stop()
    warnings.warn(
        f"train.graphs: the memory of {device} does not hold an update beside the recorded ones. From now on "
        "none is recorded, which takes longer and changes no result. Lower train.max_tokens, or end other "
        "programs that use this memory.",
        stacklevel=2,
    )


def try_to_queue(
    training: Training, losses: nn.Module, loaded: Loaded, learning_rate: float
) -> Float[Tensor, "3"]:
    """Queue an update as `queue_update` does; PyTorch's error if memory runs out."""
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
