"""The count of kernel launches, and what can be checked of a GPU update without a GPU."""

import contextlib
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import DataDependentOutputException, FakeTensorMode

from benchmarks.launches import Launches, count
from convs2s.train.batch_update import queue_update
from convs2s.train.distributed import Workers
from convs2s.train.fast import gpu_layers
from convs2s.train.fast.loss import GpuSummedLoss
from convs2s.train.fast.switch import summed_loss
from convs2s.train.optimizer import Nesterov
from tests.train.tiny import tiny_training

BATCH = 200  # the whole tiny corpus in one update


def test_what_counts_as_a_launch() -> None:
    """By hand: a product and a sum; views and allocations are none; a list large enough for 2 is 2."""
    with FakeTensorMode(), Launches() as found:
        x = torch.empty(4, 4).t()
        (x @ x[:2].t()).sum()
        torch._foreach_mul_([torch.empty(320, 65_536), torch.empty(1)], 2.0)
    assert found.counts == {"mm": 1, "sum": 1, "_foreach_mul_": 2}


def test_a_gpu_update_has_fewer_launches_and_never_waits(tmp_path: Path) -> None:
    """The plain layers need more launches; a replay is one. Waiting for a tensor without content fails."""
    counts = {}
    for path in ("plain", "for GPUs", "recorded"):
        (tmp_path / path).mkdir()
        run = tiny_training(tmp_path / path, precision="bfloat16", batch_sentences=BATCH, max_tokens=1500)
        counts[path] = count(run, path)
    assert counts["for GPUs"]["_weight_norm_interface"] < counts["plain"]["_weight_norm_interface"]
    assert counts["for GPUs"].total() < counts["plain"].total() * 0.85
    assert counts["recorded"] == {"copy_": 2, "replay": 1}


def test_a_wait_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A check of the probe itself: an update that reads a tensor's value must raise."""
    run = tiny_training(tmp_path, batch_sentences=BATCH, max_tokens=1500)
    monkeypatch.setattr(Nesterov, "update", lambda *_: torch.tensor(float(torch.ones(()).cos())))
    with pytest.raises(DataDependentOutputException):
        count(run, "plain")


def test_all_tensors_of_an_update_are_on_the_model_s_device(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Like a GPU's, tensors on the meta device, which have no content, cannot be mixed with CPU tensors."""
    run = tiny_training(tmp_path, max_tokens=60, selection={"common": 2, "candidates": 3})
    run.model.to("meta").train()
    run.workers = Workers(0, 1, torch.device("meta"))
    monkeypatch.setattr(Tensor, "pin_memory", lambda self: self)
    monkeypatch.setattr(torch, "autocast", lambda *_, **__: contextlib.nullcontext())
    monkeypatch.setattr(gpu_layers, "product_dtype", lambda x: x.dtype)
    gradients: list[Tensor] = []

    def update(*_: object) -> Tensor:
        gradients.extend(p.grad for p in run.model.parameters() if p.grad is not None)
        return torch.zeros((), device="meta")

    monkeypatch.setattr(Nesterov, "update", update)
    loss = summed_loss(run.model, 0.1)
    assert type(loss) is GpuSummedLoss
    batch = run.batching.epoch(run.train.source.lengths, run.train.target.lengths, 1, 0)[0]
    assert queue_update(run, loss, batch, run.entries(run.train, batch), 0.1).is_meta
    assert len(gradients) == len(list(run.model.parameters()))
    assert all(gradient.is_meta for gradient in gradients)
