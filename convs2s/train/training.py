"""A training: model, data, optimizer, annealing rule and progress (§4.2)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from convs2s.base.files import SIDES
from convs2s.config.train import TrainParams
from convs2s.ids.batching import Batch, Batching, Indices, Order, pad
from convs2s.ids.encoded import EncodedCorpus
from convs2s.ids.selection import VocabularySelection
from convs2s.ids.vocabulary import PAD
from convs2s.model.precision import Precision
from convs2s.model.seq2seq import Seq2Seq
from convs2s.train.annealing import Annealing
from convs2s.train.distributed import Workers
from convs2s.train.loss import SoftmaxLoss, SummedLoss
from convs2s.train.optimizer import Optimizer
from convs2s.train.recorded_updates import MULTIPLE, RecordedUpdates

Record = dict[str, float | int]
Session = dict[str, Any]
"""The cost of a stretch between two interruptions: `device`, `unit`, `count` and `torch` of the hardware;
`processes`, one for each worker where a checkpoint from before 1.2.0 lacks it; `precision` of products on it;
`seconds` in all, `training_seconds` of the updates alone; `target_tokens`, without padding, over all workers.
A checkpoint has the sessions up to it, without what was lost."""

Inputs = tuple[Tensor, Tensor, Tensor | None]
"""What the loss takes: source and target ids of padded pairs; the indices of the target's tokens, or None."""

CURVE_UPDATES = 50  # a point of the training curve is the mean over this many updates


class UpdateResult(NamedTuple):
    """The result of an update, as in `convs2s.train.loop.UpdateReport`, but for the loss: summed, in nats."""

    loss: float
    gradient_norm: float
    selected: int | None
    is_last: bool


@dataclass(frozen=True)
class Pairs:
    """Encoded sentence pairs, each side ending with EOS."""

    source: EncodedCorpus
    target: EncodedCorpus

    @classmethod
    def open(cls, folder: Path) -> "Pairs":
        """Open both sides of encoded text."""
        return cls(*(EncodedCorpus.open(folder, side) for side in SIDES))

    def arrays(
        self,
        sentences: Sequence[int] | Indices,
        multiple: int = 1,
        limits: tuple[int | None, int | None] = (None, None),
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return padded source and target ids of these pairs, (B, S) and (B, T).

        Args:
            multiple: S and T are multiples of it where they may be.
            limits: the most that padding may make S and T; None for any.
        """
        numbers = [int(i) for i in sentences]
        source = pad([self.source[i] for i in numbers], PAD, multiple, limits[0])
        target = pad([self.target[i] for i in numbers], PAD, multiple, limits[1])
        return source, target


@dataclass(frozen=True)
class Loaded:
    """A batch with its ids on the device.

    Attributes:
        parts: for each part of this worker's shares, what `Training.inputs` returns.
        entries: target vocabulary entries selected; None if all are used.
    """

    batch: Batch
    parts: list[Inputs]
    entries: Tensor | None


@dataclass
class State:
    """Training progress: everything needed to resume, apart from the weights and the optimizer's state.

    Random generators have no state to save: they are seeded by the seed and the numbers of update and share.

    Attributes:
        precision: of products (T38), float32 or bfloat16; a training that moves to another machine keeps it.
        passes: through the training data, those that are complete.
        batch: batches done in the current pass.
        updates: optimizer steps done so far.
        epoch_loss: summed loss of this epoch's batches, in nats.
        epoch_tokens: non-padding target tokens of this epoch's batches.
        point_loss: summed loss since the last point of the training curve.
        point_tokens: non-padding target tokens since then.
        epoch_selected: target entries selected, summed over this epoch's batches; 0 without selection.
        curve: the points of the training curve.
        epochs: a record of each finished epoch.
        sessions: the cost so far; only the writer's are complete.
    """

    precision: Precision = "float32"
    passes: int = 0
    batch: int = 0
    updates: int = 0
    epoch_loss: float = 0.0
    epoch_tokens: int = 0
    point_loss: float = 0.0
    point_tokens: int = 0
    epoch_selected: int = 0
    curve: list[Record] = field(default_factory=list)
    epochs: list[Record] = field(default_factory=list)
    sessions: list[Session] = field(default_factory=list)

    def count(self, result: UpdateResult, tokens: int, learning_rate: float, batches: int) -> None:
        """Count an update with its target tokens, in a pass of this many batches."""
        self.batch += 1
        if self.batch == batches:
            self.passes += 1
            self.batch = 0
        self.updates += 1
        self.epoch_loss += result.loss
        self.epoch_tokens += tokens
        self.epoch_selected += result.selected or 0
        self.point_loss += result.loss
        self.point_tokens += tokens
        if self.updates % CURVE_UPDATES == 0:
            point = {"update": self.updates, "loss": self.point_loss / self.point_tokens}
            self.curve.append(point | {"gradient_norm": result.gradient_norm, "learning_rate": learning_rate})
            self.point_loss, self.point_tokens = 0.0, 0

    @property
    def perplexities(self) -> list[float]:
        """Validation perplexity of each finished epoch."""
        return [record["validation_perplexity"] for record in self.epochs]

    @property
    def epoch_updates(self) -> int:
        """Updates since the last validation."""
        return self.updates - int(self.epochs[-1]["updates"] if self.epochs else 0)

    def bests(self, count: int) -> list[list[int]]:
        """Return at most two lists of the `count` best epochs, each given by its number of updates.

        The first list is of all epochs so far; the second, of those before the epoch that last changed it.
        """
        sets: list[list[int]] = []
        for end in range(len(self.epochs), 0, -1):
            order = sorted(self.epochs[:end], key=lambda record: record["validation_perplexity"])
            updates = [int(record["updates"]) for record in order[:count]]
            if updates not in sets:
                sets.append(updates)
            if len(sets) == 2:
                break
        return sets

    @property
    def last_is_best(self) -> bool:
        """Whether the last finished epoch has a lower perplexity than all earlier ones."""
        return bool(self.epochs) and min(self.perplexities[:-1], default=math.inf) > self.perplexities[-1]


@dataclass
class Training:
    """A training: model, data, optimizer, annealing rule and progress.

    Attributes:
        softmax: loss of the softmax layer: the plain one, or that of the fast layers.
        lists_tokens: whether the loss gets the indices of a batch's tokens and does not score its padding. On
            a CPU this saves work. On a GPU that is 1 to 3 % of the softmax layer's, and picking the tokens
            takes more operations than ignoring the padding.
        recorded: makes updates, with recordings of the frequent ones; None to make each as it is.
        selection: selects the target vocabulary of each whole batch (§5.4), across its parts and workers,
            because splitting a batch must not change its loss (T13, T14); None for the whole vocabulary.
        signals: numbers of those that this process has got, which ask to save and end.
    """

    model: Seq2Seq
    optimizer: Optimizer
    train: Pairs
    valid: Pairs
    batching: Batching
    annealing: Annealing
    workers: Workers
    params: TrainParams
    seed: int
    softmax: SoftmaxLoss
    lists_tokens: bool
    selection: VocabularySelection | None
    recorded: RecordedUpdates | None = None
    state: State = field(default_factory=State)
    signals: list[int] = field(default_factory=list)

    def losses(self, smoothing: float) -> SummedLoss:
        """Return the loss of the model."""
        return SummedLoss(self.model, smoothing, self.softmax)

    def learning_rate(self) -> float:
        """Return the learning rate of the next update."""
        rate = self.annealing.rate(self.state.perplexities)
        warmup = self.params.warmup_updates
        if warmup is None:
            return rate
        update = self.state.updates + 1
        return rate * min(update / warmup, math.sqrt(warmup / update))

    @property
    def is_validation_due(self) -> bool:
        """Whether an epoch, `validate_updates` updates or else a pass, is complete but not validated."""
        updates = self.state.epoch_updates
        if self.params.validate_updates:
            return updates == self.params.validate_updates
        pass_is_complete = self.state.batch == 0
        return pass_is_complete and updates > 0

    def begin_pass(self) -> Order:
        """Return the batches of the next pass."""
        lengths = self.train.source.lengths, self.train.target.lengths
        return self.batching.order(*lengths, self.seed, self.state.passes)

    def load(self, batch: Batch) -> Loaded:
        """Load a batch of training pairs; for recorded updates, of few different shapes."""
        multiple = 1 if self.recorded is None else MULTIPLE
        parts = [self.inputs(self.train, part, multiple) for part in batch.parts]
        return Loaded(batch, parts, self.entries(self.train, batch))

    def inputs(self, pairs: Pairs, sentences: Sequence[int] | Indices, multiple: int = 1) -> Inputs:
        """Return these pairs on the device, padded to lengths that are multiples of a number if possible."""
        limits = self.model.max_source_tokens, self.model.max_target_tokens
        source, target = pairs.arrays(sentences, multiple, limits)
        real = self.to_device(np.flatnonzero(target != PAD)) if self.lists_tokens else None
        return self.to_device(source), self.to_device(target), real

    def entries(self, pairs: Pairs, batch: Batch) -> Tensor | None:
        """Return the target vocabulary entries selected for a batch, on the device; None for all."""
        if self.selection is None:
            return None
        return self.to_device(self.selection.tokens(*pairs.arrays(batch.whole)))

    def to_device(self, array: NDArray[np.int64] | NDArray[np.float32]) -> Tensor:
        """Return an array as a tensor on the model's device."""
        tensor = torch.from_numpy(array)
        if self.workers.device.type != "cpu":
            tensor = tensor.pin_memory()  # the host waits for copies from other memory
        return tensor.to(self.workers.device, non_blocking=True)
