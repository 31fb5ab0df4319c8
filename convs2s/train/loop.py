"""The training loop (§4.2): batches -> updates; each epoch -> validation perplexity -> learning rate."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import nn

from convs2s.base.code_folders import protect_torch_compile
from convs2s.ids.batching import Order
from convs2s.train.batch_update import finish_update, queue_update
from convs2s.train.training import Record, Training


@dataclass(frozen=True)
class UpdateReport:
    """The result of an update.

    Attributes:
        loss: nats per target token, over all workers.
        gradient_norm: before clipping.
        target_tokens: non-padding target tokens, over all workers.
        batch: its number in this epoch, from 1.
        batches: total number in this epoch.
        selected: number of target vocabulary entries selected; None without vocabulary selection.
        is_last: whether any worker had got a signal to end before this update.
    """

    epoch: int
    update: int
    loss: float
    gradient_norm: float
    learning_rate: float
    target_tokens: int
    batch: int
    batches: int
    selected: int | None
    is_last: bool


@dataclass(frozen=True)
class EpochReport:
    """The result of an epoch: number from 1, losses in nats per target token, perplexity, learning rate."""

    record: Record
    is_best: bool


def train(training: Training) -> Iterator[UpdateReport | EpochReport]:
    """Train from `training.state` until the annealing rule ends the training.

    Yields a report after every update and every epoch; at each report the state is consistent and can be
    saved. All workers get the same reports.

    Raises:
        FloatingPointError: if a gradient or a validation loss is NaN or infinite; such a gradient is not
            applied.
    """
    state = training.state
    losses = training.losses(training.params.label_smoothing)
    if training.params.compile:
        protect_torch_compile()
        losses.compile(dynamic=True)
    parallel = training.workers.wrap(losses, state.precision)
    passes, order = -1, None
    while True:
        if training.is_validation_due:
            yield EpochReport(finish_epoch(training), state.last_is_best)
        if training.annealing.ends(state.perplexities) is not None:
            return
        if order is None or state.passes != passes:
            passes, order = state.passes, training.begin_pass()
        yield from train_until_validation(training, parallel, order)


def train_until_validation(training: Training, losses: nn.Module, order: Order) -> Iterator[UpdateReport]:
    """Make updates until an epoch is complete, or a pass through the training data."""
    state, batches = training.state, len(order.spans)
    training.model.train()
    workers = training.workers
    own = training.batching.share(order, workers.rank, state.batch, workers.count)
    ahead = map(training.load, own)
    following = next(ahead, None)
    while loaded := following:
        batch, learning_rate = loaded.batch, training.learning_rate()
        queued = queue_update(training, losses, loaded, learning_rate)
        following = next(ahead, None)  # while a GPU computes
        result = finish_update(training, queued, loaded, learning_rate)
        state.count(result, batch.target_tokens, learning_rate, batches)
        yield UpdateReport(
            epoch=len(state.epochs) + 1,
            update=state.updates,
            loss=result.loss / batch.target_tokens,
            gradient_norm=result.gradient_norm,
            learning_rate=learning_rate,
            target_tokens=batch.target_tokens,
            batch=state.epoch_updates,
            batches=training.params.validate_updates or batches,
            selected=result.selected,
            is_last=result.is_last,
        )
        if training.is_validation_due:
            return


def finish_epoch(training: Training) -> Record:
    """Validate; record the epoch in the state, and return its record; errors as in `train`."""
    state = training.state
    nats = validation_loss(training)
    if not math.isfinite(nats):
        raise FloatingPointError(
            f"Training diverged: after epoch {len(state.epochs) + 1} ({state.updates:,} updates) the "
            f"validation loss is {nats}; expected a finite one. The epoch was not counted. Lower "
            "train.learning_rate, or check the data for damaged sentences."
        )
    record = {
        "epoch": len(state.epochs) + 1,
        "updates": state.updates,
        "learning_rate": training.learning_rate(),
        "training_loss": state.epoch_loss / state.epoch_tokens,
        "validation_loss": nats,
        "validation_perplexity": perplexity(nats),
    }
    if state.epoch_selected:
        record["selected_entries"] = state.epoch_selected / state.epoch_updates
    state.epochs.append(record)
    state.epoch_loss, state.epoch_tokens, state.epoch_selected = 0.0, 0, 0
    return record


def perplexity(nats: float) -> float:
    """Return the perplexity of a loss in nats per token; finite for any finite loss."""
    return math.exp(min(nats, 700.0))


@torch.no_grad()
def validation_loss(training: Training, share: int | None = None) -> float:
    """Return nats per target token on the validation set, in float32, without dropout or smoothing.

    With vocabulary selection, batches are made as in training, and the softmax is over the entries selected
    for a batch. Other entries were never trained against its sources, and would only add random scores.

    Args:
        share: the one whose part of the sum is returned, without the other workers; None: all.
    """
    training.model.eval()
    losses = training.losses(smoothing=0.0)
    workers, valid = training.workers, training.valid
    order = training.batching.order(valid.source.lengths, valid.target.lengths, seed=0, epoch=0)
    total = torch.zeros((), dtype=torch.float64, device=workers.device)
    if share is None:
        own = training.batching.share(order, workers.rank, processes=workers.count)
    else:
        own = training.batching.share(order, share)
    for batch in filter(lambda batch: batch.counted, own):
        entries = training.entries(valid, batch)
        for part in batch.parts:
            _, likelihood = losses(*training.inputs(valid, part), entries)
            total += likelihood
    tokens = int(valid.target.lengths.sum())
    return float(total if share is not None else workers.total(total)) / tokens
