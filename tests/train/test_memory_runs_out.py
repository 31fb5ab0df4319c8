"""Where memory runs out in an update, it is made again with what takes less, and the training is the same."""

import contextlib
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from convs2s.train import loss_in_parts
from convs2s.train.batch_update import queue_update
from convs2s.train.distributed import Workers
from convs2s.train.loop import UpdateReport, train
from convs2s.train.loss import softmax_loss
from convs2s.train.loss_in_parts import LossInParts
from convs2s.train.recorded_updates import Ids, RecordedUpdates, Recording, Update
from convs2s.train.training import Training
from tests.train.test_recorded_updates import Repeated
from tests.train.tiny import batches, tiny_training, weights

NO_MEMORY = "CUDA out of memory. Tried to allocate 2.00 GiB."


@dataclass
class SmallMemory:
    """A loss that fails for more tokens than `most`; it counts the tokens of its calls.

    Attributes:
        failed: the features for which it failed last.
    """

    most: int
    calls: list[int] = field(default_factory=list)
    failed: weakref.ref[Tensor] | None = None

    def __call__(self, features: Tensor, *arguments: Any) -> tuple[Tensor, Tensor]:
        assert self.failed is None or self.failed() is None, "what failed still takes memory"
        self.calls.append(len(features))
        if len(features) > self.most:
            self.failed = weakref.ref(features)
            raise torch.OutOfMemoryError(NO_MEMORY)
        return softmax_loss(features, *arguments)


def gpu_training(folder: Path, monkeypatch: pytest.MonkeyPatch, **changes: Any) -> Training:
    """Return a training on the CPU with the layers and the loss of a GPU."""
    folder.mkdir()
    monkeypatch.setenv("CONVS2S_ENGINE", "plain")
    training = tiny_training(folder, dropout=0.1, **changes)
    monkeypatch.setenv("CONVS2S_ENGINE", "auto")
    training.lists_tokens = False
    training.softmax = LossInParts(part_bytes=1, is_used=False)
    return training


def train_all(training: Training) -> list[float]:
    """Train to the end; return the losses."""
    return [report.loss for report in train(training) if isinstance(report, UpdateReport)]


def test_the_loss_is_computed_in_parts_from_then_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of the parts before in the same update; dropout is that of one that fits. It is said once."""
    expected = gpu_training(tmp_path / "one", monkeypatch, max_epochs=1, max_tokens=40)
    expected_losses = train_all(expected)
    training = gpu_training(tmp_path / "other", monkeypatch, max_epochs=1, max_tokens=40)
    memory = SmallMemory(30)
    monkeypatch.setattr(loss_in_parts, "softmax_loss", memory)
    with pytest.warns(UserWarning) as caught:
        losses = train_all(training)
    [warning] = caught
    assert "memory of cpu does not hold all scores of an update at once" in str(warning.message)
    assert sum(tokens > memory.most for tokens in memory.calls) == 1
    assert losses == pytest.approx(expected_losses, rel=1e-5)
    assert (weights(training) - weights(expected)).abs().max() < 1e-5


@pytest.mark.parametrize("workers", [1, 2])
def test_what_nothing_helps_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    """With PyTorch's message: where parts do not fit, or there is only one, and beside other workers."""
    training = gpu_training(tmp_path / "a", monkeypatch, max_epochs=1)
    if workers > 1:
        training.workers = Workers(0, workers, torch.device("cpu"))
    memory = SmallMemory(0)
    monkeypatch.setattr(loss_in_parts, "softmax_loss", memory)
    losses, loaded = training.losses(0.1).train(), training.load(batches(training)[0])
    with pytest.raises(torch.OutOfMemoryError, match="Tried to allocate"):
        queue_update(training, losses, loaded, 0.1)
    assert len(memory.calls) == (2 if workers == 1 else 1)
    training.softmax = LossInParts(is_used=False)
    memory.calls.clear()
    with pytest.raises(torch.OutOfMemoryError, match="Tried to allocate"):
        queue_update(training, training.losses(0.1).train(), loaded, 0.1)
    assert len(memory.calls) == 1


def test_other_errors_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They would only come again."""

    def fail(*_: object) -> Any:
        raise RuntimeError("CUDA error: an illegal memory access was encountered")

    training = gpu_training(tmp_path / "a", monkeypatch)
    monkeypatch.setattr(loss_in_parts, "softmax_loss", fail)
    with pytest.raises(RuntimeError, match="illegal memory access"):
        queue_update(training, training.losses(0.1).train(), training.load(batches(training)[0]), 0.1)


class NoRoom(Repeated):
    """Recorded updates of a memory that holds no recording, or nothing beside two of them.

    Args:
        for_recording: what does not fit: another recording, or an update that is not recorded.
    """

    def __init__(self, training: Training, *, for_recording: bool) -> None:
        super().__init__()
        self.training, self.for_recording = training, for_recording

    def make(self, update: Update, parts: Sequence[Ids], numbers: Tensor) -> Any:
        self.update = update
        return super().make(self.make_as_it_is, parts, numbers)

    def make_as_it_is(self, parts: Sequence[Ids], numbers: Tensor) -> Any:
        if len(self.recordings) == 2 and not self.for_recording:
            self.fail()
        return self.update(parts, numbers)

    def record(self, update: Update, parts: Sequence[Ids], numbers: Tensor) -> Recording:
        self._is_recording = True
        if self.for_recording or len(self.recordings) == 2:
            self.fail()
        self._is_recording = False
        return super().record(self.update, parts, numbers)

    def fail(self) -> None:
        """Fail after some of the gradients were computed."""
        for parameter in self.training.model.parameters():
            parameter.grad = torch.ones_like(parameter)
        raise torch.OutOfMemoryError(NO_MEMORY)


@pytest.mark.parametrize("for_recording", [False, True])
def test_recordings_are_dropped_for_an_update_that_does_not_fit_beside_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, for_recording: bool
) -> None:
    """And no more are made, as it would happen again. Results are the same to the last bit."""
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _: (1000, 1000))
    results = []
    for name in ("plain", "recorded"):
        training = gpu_training(tmp_path / name, monkeypatch, max_epochs=3)
        training.recorded = (
            RecordedUpdates() if name == "plain" else NoRoom(training, for_recording=for_recording)
        )
        with contextlib.ExitStack() as stack:
            if name == "plain":
                training.recorded.stop()
            else:
                warned = stack.enter_context(pytest.warns(UserWarning))
            results.append((train_all(training), weights(training)))
    [warning] = warned
    assert "train.graphs: the memory of cpu does not hold an update beside" in str(warning.message)
    assert training.recorded is not None
    assert not training.recorded.recordings
    assert results[0][0] == results[1][0]
    assert torch.equal(results[0][1], results[1][1])
