"""The count of launches, and what it says of an update on a GPU."""

from pathlib import Path

import pytest
import torch
from torch._subclasses.fake_tensor import DataDependentOutputException, FakeTensorMode

from benchmarks.launches import Launches, count
from convs2s.train import loop
from tests.train.tiny import tiny_training

BATCH = 200  # all sentences of the tiny corpus, in one update


def test_what_counts_as_a_launch() -> None:
    """By hand: a product and a sum; not views and allocations; a list of 2 blocks' launches as 2."""
    with FakeTensorMode(), Launches() as found:
        x = torch.empty(4, 4).t()
        (x @ x[:2].t()).sum()
        torch._foreach_mul_([torch.empty(320, 65_536), torch.empty(1)], 2.0)
    assert found.counts == {"mm": 1, "sum": 1, "_foreach_mul_": 2}


def test_a_gpu_s_update_has_fewer_launches_and_no_wait(tmp_path: Path) -> None:
    """Less than three quarters of the plain layers'. Tensors have no content: a wait would be an error."""
    counts = {}
    for path in ("plain", "for GPUs"):
        (tmp_path / path).mkdir()
        run = tiny_training(tmp_path / path, precision="bfloat16", batch_sentences=BATCH, max_tokens=1500)
        counts[path] = count(run, path)
    assert counts["for GPUs"]["_weight_norm_interface"] <= 5
    assert counts["for GPUs"].total() < counts["plain"].total() * 0.75


def test_a_wait_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The probe itself: a loss that asks for its value, or for which targets are real."""
    run = tiny_training(tmp_path, batch_sentences=BATCH, max_tokens=1500)
    monkeypatch.setattr(loop, "update", lambda *_: torch.tensor(float(torch.ones(()).cos())))
    with pytest.raises(DataDependentOutputException):
        count(run, "plain")
