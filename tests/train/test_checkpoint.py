import dataclasses
import resource
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor
from torch.testing import assert_close

from convs2s.model.storage import save_model
from convs2s.train.distributed import Workers
from convs2s.train.loop import UpdateReport, train
from convs2s.train.running.checkpoint import (
    allocate_on_host,
    load_mean,
    load_weights,
    read_checkpoint,
    restore,
    save_checkpoint,
)
from convs2s.train.running.run import begin
from convs2s.train.running.work_folder import WorkFolder
from convs2s.train.training import Training
from tests.model.changed import ChangedSeq2Seq
from tests.model.small import small_model, small_params
from tests.train.tiny import tiny_training, weights

PRINTS = {"seed": "1", "model": "small"}


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Training:
    """A training stopped in its second epoch."""
    training = tiny_training(tmp_path_factory.mktemp("stopped"), pairs=60, max_epochs=2)
    next(r for r in train(training) if isinstance(r, UpdateReport) and r.update == 12)
    return training


@pytest.fixture
def path(stopped: Training, tmp_path: Path) -> Path:
    """Its checkpoint."""
    save_checkpoint(tmp_path / "c", stopped, PRINTS)
    return tmp_path / "c"


def test_a_checkpoint_holds_what_was_saved(tmp_path: Path, stopped: Training, path: Path) -> None:
    """It has the same fingerprint and state, and all weights and momenta."""
    checkpoint = read_checkpoint(path)
    assert checkpoint.prints == PRINTS
    assert checkpoint.state == stopped.state
    resumed = tiny_training(tmp_path, pairs=60, max_epochs=2)
    restore(checkpoint, resumed, path)
    assert torch.equal(weights(resumed), weights(stopped))
    momenta = [run.optimizer.buffers["momentum"].values() for run in (resumed, stopped)]
    assert all(torch.equal(one, other) for one, other in zip(*momenta, strict=True))


@pytest.fixture
def changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], Training]]:
    """Yield a function that builds a training of a model that people have added to."""
    monkeypatch.setattr("convs2s.train.setup.Seq2Seq", ChangedSeq2Seq)
    monkeypatch.setattr("convs2s.model.storage.Seq2Seq", ChangedSeq2Seq)
    yield lambda: tiny_training(tmp_path, pairs=60, layers=1, dropout=0.0, max_epochs=2)


def test_a_changed_model_is_resumed_with_all_that_it_has(
    tmp_path: Path, changed: Callable[[], Training]
) -> None:
    """Its own parameters, norms and running means come back, so that the next update is the same."""
    stopped, resumed = changed(), changed()
    updates = (report for report in train(stopped) if isinstance(report, UpdateReport))
    next(report for report in updates if report.update == 3)
    save_checkpoint(tmp_path / "c", stopped, PRINTS)
    restore(read_checkpoint(tmp_path / "c"), resumed, tmp_path / "c")
    assert resumed.model.get_buffer("batch_norm.num_batches_tracked") >= 3
    for name, tensor in stopped.model.state_dict().items():
        assert torch.equal(resumed.model.state_dict()[name], tensor), name
    assert next(iter(train(resumed))) == next(updates)
    checkpoint = read_checkpoint(tmp_path / "c")
    assert "weights/sines" not in checkpoint.tensors  # the model computes them
    del checkpoint.tensors["weights/batch_norm.running_mean"]
    with pytest.raises(ValueError, match="running_mean: expected"):
        restore(checkpoint, resumed, tmp_path / "c")


def test_the_mean_of_a_changed_model_is_exported(tmp_path: Path, changed: Callable[[], Training]) -> None:
    """Weights are averaged; a count, such as that of a batch norm, is the last checkpoint's."""
    run = changed()
    checkpoints = []
    updates = (report for report in train(run) if isinstance(report, UpdateReport))
    for update in (2, 4):
        next(report for report in updates if report.update == update)
        save_checkpoint(tmp_path / "c", run, PRINTS)
        checkpoints.append(read_checkpoint(tmp_path / "c"))
    scales = [checkpoint.tensors["weights/scale"] for checkpoint in checkpoints]
    load_mean(run.model, checkpoints, tmp_path)
    save_model(tmp_path / "model", run.model, small_params())
    weights = load_file(tmp_path / "model" / "weights.safetensors")
    assert_close(weights["scale"], sum(scales) / 2)
    assert weights["batch_norm.num_batches_tracked"].dtype == torch.int64
    counts = [checkpoint.tensors["weights/batch_norm.num_batches_tracked"] for checkpoint in checkpoints]
    assert weights["batch_norm.num_batches_tracked"] == counts[1] > counts[0]


def test_other_workers_get_all_that_a_changed_model_has(
    tmp_path: Path, changed: Callable[[], Training]
) -> None:
    """A worker with other running means would compute another validation loss."""
    run = changed()
    copied = list[int]()
    next(report for report in train(run) if isinstance(report, UpdateReport))

    class Second(Workers):
        """A worker that notes what it gets from the writer."""

        def from_writer(self, value: Any) -> Any:
            return value

        def copy_from_writer(self, tensors: Iterable[torch.Tensor]) -> None:
            copied.extend(tensor.data_ptr() for tensor in tensors)

    second = dataclasses.replace(run, workers=Second(1, 2, torch.device("cpu")))
    begin(second, WorkFolder(tmp_path, PRINTS), None)
    state = {name: tensor.data_ptr() for name, tensor in run.model.state_dict().items()}
    assert {name for name, place in state.items() if place not in copied} == set()


@pytest.mark.parametrize(("optimizer", "size"), [("nesterov", 2), ("adam", 3)])
def test_a_checkpoint_is_two_or_three_times_the_model(optimizer: str, size: int, tmp_path: Path) -> None:
    """Weights, and one or two numbers for each, as docs/troubleshooting.md says: they fill disks."""
    training = tiny_training(tmp_path, optimizer=optimizer, warmup_updates=None)
    save_checkpoint(tmp_path / "c", training, PRINTS)
    values = sum(tensor.numel() for tensor in read_checkpoint(tmp_path / "c").tensors.values())
    assert values == size * sum(parameter.numel() for parameter in training.model.parameters())


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: content[:-10],
        lambda content: content + bytes(10),
        lambda content: bytes(len(content)),
        lambda content: content[: len(content) // 2] + bytes(len(content) - len(content) // 2),
    ],
    ids=["empty", "cut", "extended", "zero", "half zero"],
)
def test_damage_is_found(path: Path, damage: Callable[[bytes], bytes]) -> None:
    """A full disk or a power loss can leave such files."""
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ValueError, match="c is damaged"):
        read_checkpoint(path)


def test_weights_of_another_shape_are_refused(path: Path) -> None:
    """For a checkpoint of another model, the message lists the tensors that differ."""
    with pytest.raises(ValueError, match="does not fit the model"):
        load_weights(small_model(), read_checkpoint(path), path)


@pytest.mark.parametrize("changed", ["momentum/{}", "other/{}"])
def test_a_checkpoint_has_all_of_a_trainings_tensors_and_no_others(
    changed: str, stopped: Training, path: Path
) -> None:
    """Without its momentum, a weight would go on as if it had never moved."""
    checkpoint = read_checkpoint(path)
    name = next(iter(dict(stopped.model.named_parameters())))
    if checkpoint.tensors.pop(changed.format(name), None) is None:
        checkpoint.tensors[changed.format(name)] = torch.zeros(2)
    before = weights(stopped)
    with pytest.raises(ValueError, match=f"{path} does not fit .*\n  {changed.format(name)}: expected"):
        restore(checkpoint, stopped, path)
    assert torch.equal(weights(stopped), before)


def test_lack_of_memory_is_not_damage(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A training would start from scratch for want of a few gigabytes."""
    monkeypatch.setattr("convs2s.train.running.checkpoint.checksum", mock.Mock(side_effect=MemoryError))
    with pytest.raises(MemoryError):
        read_checkpoint(path)


def test_a_full_disk_leaves_the_previous_checkpoint(stopped: Training, path: Path) -> None:
    """A write that fails midway (here: a file size limit) is reported, and nothing half-written remains."""
    before = path.read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
        with pytest.raises(OSError, match=r"cannot be written.*disk full"):
            save_checkpoint(path, stopped, PRINTS)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_bytes() == before
    assert not list(path.parent.glob(".c.*"))


def test_memory_that_cannot_be_pinned_is_used_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a training under WSL would end at its first checkpoint."""
    plain = torch.empty

    def refuse(*shape: Any, pin_memory: bool = False, **settings: Any) -> Tensor:
        if pin_memory:
            raise RuntimeError("CUDA error: out of memory")
        return plain(*shape, **settings)

    monkeypatch.setattr(torch, "empty", refuse)
    monkeypatch.setattr(torch.Tensor, "is_cuda", True)
    found = allocate_on_host(plain(2, 3, dtype=torch.bfloat16))
    assert (found.shape, found.dtype) == ((2, 3), torch.bfloat16)
