"""The training loop (§4.2): batches -> updates; each epoch -> validation perplexity -> learning rate."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor, nn

from convs2s.model.seq2seq import Seq2Seq
from convs2s.text.corpus.batching import Batch, Batching, pad
from convs2s.text.corpus.encoded import EncodedCorpus
from convs2s.text.vocabulary.selection import VocabularySelection
from convs2s.text.vocabulary.vocabulary import PAD
from convs2s.train.annealing import Annealing
from convs2s.train.distributed import Workers
from convs2s.train.fast.switch import summed_loss
from convs2s.train.fast.weights import weights_of_update
from convs2s.train.loss import SummedLoss
from convs2s.train.optimizer import update

Record = dict[str, float | int]

CURVE_UPDATES = 50  # a point of the training curve is the mean over so many updates


@dataclass(frozen=True)
class Pairs:
    """Encoded sentence pairs, each side ending with EOS."""

    source: EncodedCorpus
    target: EncodedCorpus

    def arrays(
        self, sentences: Sequence[int] | NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return padded source and target ids of these pairs, (B, S) and (B, T)."""
        source, target = (pad([side[int(i)] for i in sentences], PAD) for side in (self.source, self.target))
        return source, target


@dataclass
class State:
    """Training progress; with the weights and the optimizer's state, all that is needed to resume.

    Random numbers have no state: each update draws its own from seed, update and rank.

    Attributes:
        batch: batches done in the current epoch.
        updates: optimizer steps done so far.
        epoch_loss: summed loss of this epoch's batches, in nats.
        epoch_tokens: non-padding target tokens of this epoch's batches.
        point_loss: summed loss since the last point of the training curve.
        point_tokens: non-padding target tokens since then.
        epoch_selected: target entries selected, summed over this epoch's batches; 0 without selection.
        curve: the points of the training curve.
        epochs: a record of each finished epoch.
    """

    batch: int = 0
    updates: int = 0
    epoch_loss: float = 0.0
    epoch_tokens: int = 0
    point_loss: float = 0.0
    point_tokens: int = 0
    epoch_selected: int = 0
    curve: list[Record] = field(default_factory=list)
    epochs: list[Record] = field(default_factory=list)

    def count(self, done: "Done", tokens: int, learning_rate: float) -> None:
        """Count an update with its target tokens."""
        self.batch += 1
        self.updates += 1
        self.epoch_loss += done.loss
        self.epoch_tokens += tokens
        self.epoch_selected += done.selected or 0
        self.point_loss += done.loss
        self.point_tokens += tokens
        if self.updates % CURVE_UPDATES == 0:
            point = {"update": self.updates, "loss": self.point_loss / self.point_tokens}
            self.curve.append(point | {"gradient_norm": done.gradient_norm, "learning_rate": learning_rate})
            self.point_loss, self.point_tokens = 0.0, 0

    @property
    def perplexities(self) -> list[float]:
        """Validation perplexity of each finished epoch."""
        return [record["validation_perplexity"] for record in self.epochs]

    @property
    def bests(self) -> list[int]:
        """Updates done at the end of each epoch that was the best one so far."""
        values = self.perplexities
        lower = [value < min(values[:i], default=math.inf) for i, value in enumerate(values)]
        return [int(record["updates"]) for record, is_best in zip(self.epochs, lower, strict=True) if is_best]

    @property
    def last_is_best(self) -> bool:
        """Whether the last finished epoch has a lower perplexity than all earlier ones."""
        return bool(self.epochs) and min(self.perplexities[:-1], default=math.inf) > self.perplexities[-1]


class Done(NamedTuple):
    """An update: its summed loss in nats, over all workers; the gradient's norm before clipping.

    `selected` is the number of target vocabulary entries; None if all.
    """

    loss: float
    gradient_norm: float
    selected: int | None


@dataclass(frozen=True)
class UpdateReport:
    """What an update did.

    Attributes:
        loss: nats per target token, over all workers.
        gradient_norm: before clipping.
        target_tokens: non-padding, over all workers.
        sentences: over all workers.
        batches: of this epoch, in all.
        selected: target vocabulary entries of the batch; None without vocabulary selection.
    """

    epoch: int
    update: int
    loss: float
    gradient_norm: float
    learning_rate: float
    target_tokens: int
    sentences: int
    batches: int
    selected: int | None


@dataclass(frozen=True)
class EpochReport:
    """The result of an epoch: number from 1, losses in nats per target token, perplexity, learning rate."""

    record: Record
    is_best: bool


@dataclass
class Training:
    """A training: what is trained, on which data, by which rule, and its progress.

    Attributes:
        precision: of products; float32 or bfloat16 (T38).
        smoothing: label smoothing; with vocabulary selection over the selected entries.
        selection: of the target vocabulary of a batch (§5.4), over all its parts and workers, because the
            split of a batch must not change its loss (T13, T14); None for the whole vocabulary.
    """

    model: Seq2Seq
    optimizer: torch.optim.SGD
    train: Pairs
    valid: Pairs
    batching: Batching
    annealing: Annealing
    workers: Workers
    seed: int
    clip_norm: float
    smoothing: float
    precision: torch.dtype
    selection: VocabularySelection | None
    state: State = field(default_factory=State)

    def inputs(
        self, pairs: Pairs, sentences: Sequence[int] | NDArray[np.int64]
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return source ids, target ids and where the latter are not padding, all on the device.

        The positions count through the rows of the target. To find them here is free, while a GPU would have
        to finish all work before it could say how many there are.
        """
        source, target = pairs.arrays(sentences)
        real = np.flatnonzero(target != PAD)
        return self.to_device(source), self.to_device(target), self.to_device(real)

    def entries(self, pairs: Pairs, batch: Batch) -> Tensor | None:
        """Return the target vocabulary entries of a batch, on the device; None for all."""
        if self.selection is None:
            return None
        return self.to_device(self.selection.tokens(*pairs.arrays(batch.whole)))

    def to_device(self, array: NDArray[np.int64]) -> Tensor:
        """Return an array as a tensor where the model is."""
        tensor, device = torch.from_numpy(array), self.workers.device
        # Only from pinned memory does a copy to a GPU wait for its turn there instead of here.
        return tensor if device.type == "cpu" else tensor.pin_memory().to(device, non_blocking=True)


def train(training: Training) -> Iterator[UpdateReport | EpochReport]:
    """Train from `training.state` until the annealing rule ends the training.

    Yields a report after every update and every epoch; between reports the state is consistent and
    may be saved. All workers get the same reports.

    Raises:
        FloatingPointError: if a gradient or a validation loss is NaN or infinite; weights are those of the
            previous update.
    """
    state = training.state
    losses = training.workers.wrap(summed_loss(training.model, training.smoothing))
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
            done = _update(training, losses, batch, learning_rate)
            state.count(done, batch.target_tokens, learning_rate)
            yield UpdateReport(
                epoch=len(state.epochs) + 1,
                update=state.updates,
                loss=done.loss / batch.target_tokens,
                gradient_norm=done.gradient_norm,
                learning_rate=learning_rate,
                target_tokens=batch.target_tokens,
                sentences=batch.sentences,
                batches=len(batches),
                selected=done.selected,
            )
        record = _finish_epoch(training, learning_rate)
        yield EpochReport(record, state.last_is_best)


def _update(training: Training, losses: nn.Module, batch: Batch, learning_rate: float) -> Done:
    """Process a batch's parts, then make one update."""
    entries = training.entries(training.train, batch)
    results = _queue_update(training, losses, batch, entries, learning_rate)
    loss, norm = results.tolist()  # the only time that the host waits for the device
    if not math.isfinite(norm):
        raise FloatingPointError(
            f"Training diverged: in update {training.state.updates + 1:,} (epoch "
            f"{len(training.state.epochs) + 1}, learning rate {learning_rate:g}) the gradient norm is "
            f"{norm}; wanted a finite one. The update was not applied. Lower train.learning_rate, or check "
            "the data for damaged sentences."
        )
    return Done(loss, norm, None if entries is None else len(entries))


def _queue_update(
    training: Training, losses: nn.Module, batch: Batch, entries: Tensor | None, learning_rate: float
) -> Float[Tensor, "2"]:
    """Ask the device for an update; return the loss summed over workers, and the gradient's norm."""
    workers, device = training.workers, training.workers.device
    seed = np.random.SeedSequence([training.seed, training.state.updates, workers.rank])
    torch.manual_seed(int(seed.generate_state(1, np.uint64)[0]))
    # Backward averages over workers; the gradient wanted is the sum over all tokens of the batch,
    # divided by their number (§4.2, T13).
    scale = workers.count / batch.target_tokens if batch.counted else 0.0
    total = torch.zeros((), dtype=torch.float64, device=device)
    with weights_of_update(training.model, training.precision, len(batch.parts)):
        for i, part in enumerate(batch.parts, start=1):
            inputs = training.inputs(training.train, part)
            with workers.accumulate(losses, last=i == len(batch.parts)):
                with torch.autocast(
                    device.type, torch.bfloat16, enabled=training.precision == torch.bfloat16
                ):
                    loss, _ = losses(*inputs, entries)
                (loss * scale).backward()
            if batch.counted:
                total += loss.detach()
    norm = update(training.optimizer, learning_rate, training.clip_norm)
    return torch.stack([workers.total(total), norm.double()])


def _finish_epoch(training: Training, learning_rate: float) -> Record:
    state = training.state
    nats = validation_loss(training)
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
        record["selected_types"] = state.epoch_selected / state.batch
    state.epochs.append(record)
    state.batch, state.epoch_loss, state.epoch_tokens = 0, 0.0, 0
    state.epoch_selected = 0
    return record


@torch.no_grad()
def validation_loss(training: Training) -> float:
    """Return nats per target token on the validation set, in float32, without dropout or smoothing.

    With vocabulary selection the softmax is over the entries selected for a batch, and batches are made as in
    training: entries never selected together with a source are never trained against it either, and would
    only add random scores to the softmax.
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
