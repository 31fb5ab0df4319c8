"""The training loop (§4.2): batches -> updates; each epoch -> validation perplexity -> learning rate."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch

from convs2s.train.batch_update import make_update, recorded_updates
from convs2s.train.fast.recorded import RecordedUpdates
from convs2s.train.fast.switch import summed_loss
from convs2s.train.loss import SummedLoss
from convs2s.train.training import Record, Training


@dataclass(frozen=True)
class UpdateReport:
    """The result of an update.

    Attributes:
        loss: nats per target token, over all workers.
        gradient_norm: before clipping.
        target_tokens: non-padding target tokens, over all workers.
        sentences: over all workers.
        batch: its number in this epoch, from 1.
        batches: total number in this epoch.
        selected: number of target vocabulary entries selected; None without vocabulary selection.
    """

    epoch: int
    update: int
    loss: float
    gradient_norm: float
    learning_rate: float
    target_tokens: int
    sentences: int
    batch: int
    batches: int
    selected: int | None


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
    losses = training.workers.wrap(summed_loss(training.model, training.smoothing), training.precision)
    recorded = recorded_updates(training, losses)
    while training.annealing.ends(state.perplexities) is None:
        learning_rate = training.annealing.rate(state.perplexities)
        batches = training.batching.epoch(
            training.train.source.lengths,
            training.train.target.lengths,
            training.seed,
            len(state.epochs),
            training.workers.rank,
        )
        training.model.train()
        for batch in batches[state.batch :]:
            done = make_update(training, losses, batch, learning_rate, recorded)
            state.count(done, batch.target_tokens, learning_rate)
            yield UpdateReport(
                epoch=len(state.epochs) + 1,
                update=state.updates,
                loss=done.loss / batch.target_tokens,
                gradient_norm=done.gradient_norm,
                learning_rate=learning_rate,
                target_tokens=batch.target_tokens,
                sentences=batch.sentences,
                batch=state.batch,
                batches=len(batches),
                selected=done.selected,
            )
        record = _finish_epoch(training, learning_rate, recorded)
        yield EpochReport(record, state.last_is_best)


def _finish_epoch(training: Training, learning_rate: float, recorded: RecordedUpdates | None) -> Record:
    state = training.state
    validate = partial(validation_loss, training)
    nats = validate() if recorded is None else recorded.make_way_for(validate)
    if not math.isfinite(nats):
        raise FloatingPointError(
            f"Training diverged: after epoch {len(state.epochs) + 1} ({state.updates:,} updates) the "
            f"validation loss is {nats}; wanted a finite one. The epoch was not counted. Lower "
            "train.learning_rate, or check the data for damaged sentences."
        )
    record = {
        "epoch": len(state.epochs) + 1,
        "updates": state.updates,
        "learning_rate": learning_rate,
        "training_loss": state.epoch_loss / state.epoch_tokens,
        "validation_loss": nats,
        "validation_perplexity": math.exp(min(nats, 700.0)),
    }
    if state.epoch_selected:
        record["selected_entries"] = state.epoch_selected / state.batch
    state.epochs.append(record)
    state.batch, state.epoch_loss, state.epoch_tokens = 0, 0.0, 0
    state.epoch_selected = 0
    return record


@torch.no_grad()
def validation_loss(training: Training) -> float:
    """Return nats per target token on the validation set, in float32, without dropout or smoothing.

    With vocabulary selection, batches are made as in training, and the softmax is over the entries selected
    for a batch. Other entries were never trained against its sources, and would only add random scores.
    """
    training.model.eval()
    losses = SummedLoss(training.model, smoothing=0.0)
    workers, valid = training.workers, training.valid
    order = training.batching.epoch(
        valid.source.lengths, valid.target.lengths, seed=0, epoch=0, rank=workers.rank
    )
    total = torch.zeros((), dtype=torch.float64, device=workers.device)
    for batch in filter(lambda batch: batch.counted, order):
        entries = training.entries(valid, batch)
        for part in batch.parts:
            _, likelihood = losses(*training.inputs(valid, part), entries)
            total += likelihood
    tokens = int(np.sum(valid.target.lengths))
    return float(workers.total(total)) / tokens
