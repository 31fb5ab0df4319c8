"""Tests of training that need a GPU; `make gpu-report` runs these."""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jaxtyping
import pytest
import torch
from torch import Tensor

from convs2s.train.batch_update import make_update, queue_update, static_updates
from convs2s.train.distributed import Workers
from convs2s.train.fast.recorded import CudaGraphs
from convs2s.train.fast.switch import summed_loss
from convs2s.train.loop import UpdateReport, train
from convs2s.train.loss import SummedLoss
from convs2s.train.run import PATHS, train_model
from convs2s.train.training import Training
from tests.train.tiny import ALONE, tiny_params, tiny_training, weights, write_tiny

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch sees no GPU"),
]
GPU = Workers(0, 1, torch.device("cuda", 0))
PRECISIONS = ["float32", "bfloat16"]
TOLERANCES = {"float32": 1e-4, "bfloat16": 0.05}
Tensors = dict[str, Tensor]


def training(folder: Path, place: Workers = GPU, **changes: Any) -> Training:
    """Return the tiny training in its own folder, by default without dropout."""
    folder.mkdir()
    return tiny_training(folder, place=place, **{"dropout": 0.0, **changes})


@contextlib.contextmanager
def waits_are_errors() -> Iterator[None]:
    """Make CUDA raise an error when the host waits for the device, after checking that it does."""
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        with pytest.raises(RuntimeError, match="synchroniz"):
            torch.ones((), device="cuda").item()
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")


def losses_and_gradients(run: Training, loss: SummedLoss) -> Tensors:
    """Return both losses of a batch and every parameter's gradient, by name."""
    run.model.train().zero_grad()
    half = run.precision == torch.bfloat16
    with torch.autocast(run.workers.device.type, torch.bfloat16, enabled=half):
        total, likelihood = loss.train()(*run.inputs(run.train, range(9)), None)
    (total / 7).backward()
    found = {name: p.grad for name, p in run.model.named_parameters() if p.grad is not None}
    return {"loss": total.detach(), "likelihood": likelihood, **found}


def check_close(found: Tensors, wanted: Tensors, precision: str) -> None:
    """Compare with a tolerance relative to each tensor's largest element."""
    assert found.keys() == wanted.keys()
    share = TOLERANCES[precision]
    for name in wanted:
        one, other = (tensors[name].float().cpu() for tensors in (found, wanted))
        near = (one - other).abs().max() <= 1e-6 + share * other.abs().max()
        assert near, f"{name}: found {one}, wanted {other}"


def moved(run: Training, loss: SummedLoss | None = None) -> Tensors:
    """Return the change of the weights in an update, its loss and the gradient's norm."""
    before = {name: p.detach().clone() for name, p in run.model.named_parameters()}
    losses = summed_loss(run.model, run.smoothing) if loss is None else loss
    results = queue_update(run, losses.train(), batch(run), None, 1.0)
    after = {name: p.detach() - before[name] for name, p in run.model.named_parameters()}
    return {"results": results, **after}


def batch(run: Training) -> Any:
    """Return the batch with the most parts."""
    batches = run.batching.epoch(run.train.source.lengths, run.train.target.lengths, 1, 0)
    return max(batches, key=lambda one: len(one.parts))


@pytest.mark.parametrize("precision", PRECISIONS)
def test_the_layers_for_gpus_compute_what_the_plain_ones_do(tmp_path: Path, precision: str) -> None:
    """Compares losses and all gradients of padded sentences, and library convolutions with windows."""
    run = training(tmp_path / "a", precision=precision)
    wanted = losses_and_gradients(run, SummedLoss(run.model, 0.1))
    check_close(losses_and_gradients(run, summed_loss(run.model, 0.1)), wanted, precision)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_an_update_is_that_of_the_plain_model(tmp_path: Path, precision: str) -> None:
    """Batches have several parts; the GPU is compared with the CPU."""
    changes: dict[str, Any] = {"precision": precision, "max_tokens": 20, "clip_norm": 1e9, "momentum": 1e-9}
    run = training(tmp_path / "plain", ALONE, **changes)
    wanted = moved(run, SummedLoss(run.model, run.smoothing))
    check_close(moved(training(tmp_path / "fast", **changes)), wanted, precision)
    on_gpu = training(tmp_path / "plain-gpu", **changes)
    check_close(moved(on_gpu, SummedLoss(on_gpu.model, run.smoothing)), wanted, precision)


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("selection", [None, {"common": 2, "candidates": 3}])
def test_the_host_does_not_wait_within_an_update(
    tmp_path: Path, precision: str, selection: dict[str, int] | None
) -> None:
    """The first update is not checked: it allocates memory and loads kernels."""
    run = training(tmp_path / "a", precision=precision, selection=selection, dropout=0.1, max_tokens=20)
    losses = summed_loss(run.model, 0.1).train()
    entries = run.entries(run.train, batch(run))
    queue_update(run, losses, batch(run), entries, 0.1)
    with waits_are_errors():
        results = queue_update(run, losses, batch(run), entries, 0.1)
    assert results.isfinite().all()


@pytest.mark.parametrize("precision", PRECISIONS)
def test_replayed_updates_are_the_computed_ones_bit_by_bit(tmp_path: Path, precision: str) -> None:
    """There are two epochs, at two learning rates, with dropout; by the second, all shapes are recorded."""
    found = []
    for name in ("computed", "replayed"):
        run = training(tmp_path / name, precision=precision, dropout=0.1, max_tokens=1000)
        losses = summed_loss(run.model, 0.1).train()
        made = static_updates(run, losses, CudaGraphs() if name == "replayed" else None)
        done = []
        for rate in (0.5, 0.125):
            for one in run.batching.epoch(run.train.source.lengths, run.train.target.lengths, 1, 0):
                done.append(make_update(run, losses, one, rate, made)[:2])
                run.state.updates += 1
        found.append((done, weights(run).cpu()))
    assert len(made.recordings) == len(made.seen) > 1
    assert found[0][0] == found[1][0]
    assert torch.equal(found[0][1], found[1][1])


@pytest.mark.skipif(
    tuple(map(int, torch.__version__.split(".")[:2])) < (2, 13),
    reason="before PyTorch 2.13 no random numbers can be drawn after a recording that failed",
)
def test_a_training_goes_on_after_a_recording_that_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It fails because it waits for the device; the updates are the same as without recordings."""
    found = []
    for name in ("computed", "failed"):
        run = training(tmp_path / name, dropout=0.1, max_tokens=1000)
        losses = summed_loss(run.model, 0.1).train()
        made = static_updates(run, losses, CudaGraphs() if name == "failed" else None)
        whole = made.update

        def waiting(*inputs: Tensor, whole: Any = whole, fails: bool = name == "failed") -> Tensor:
            if fails and torch.cuda.is_current_stream_capturing():
                inputs[3].item()
            results: Tensor = whole(*inputs)
            return results

        made.update = waiting
        for _ in range(4):
            make_update(run, losses, batch(run), 0.5, made)
            run.state.updates += 1
        found.append(weights(run).cpu())
    assert torch.equal(*found)
    assert "Training continues without new recordings" in capsys.readouterr().err


def test_the_host_does_not_wait_for_a_replay(tmp_path: Path) -> None:
    """Two updates of the same shape precede it."""
    run = training(tmp_path / "a", dropout=0.1, max_tokens=1000)
    losses = summed_loss(run.model, 0.1).train()
    made = static_updates(run, losses, CudaGraphs())
    for _ in range(2):
        queue_update(run, losses, batch(run), None, 0.1, made)
    assert len(made.recordings) == 1
    with waits_are_errors():
        results = queue_update(run, losses, batch(run), None, 0.1, made)
    assert results.isfinite().all()


@pytest.mark.parametrize("precision", PRECISIONS)
def test_a_training_repeats_bit_by_bit(tmp_path: Path, precision: str) -> None:
    """The same seed gives the same weights, dropout included: no operation adds in random order."""
    results = []
    for name in ("one", "other"):
        run = training(tmp_path / name, precision=precision, dropout=0.1, max_epochs=1)
        losses = [report.loss for report in train(run) if isinstance(report, UpdateReport)]
        results.append((losses, weights(run).cpu()))
    assert results[0][0] == results[1][0]
    assert torch.equal(results[0][1], results[1][1])


def test_a_compiled_update_is_that_of_the_layers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """torch.compile cannot handle the tests' shape checks."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    changes: dict[str, Any] = {"clip_norm": 1e9, "momentum": 1e-9}
    wanted = moved(training(tmp_path / "a", **changes))
    run = training(tmp_path / "b", **changes)
    losses = summed_loss(run.model, run.smoothing)
    losses.compile()
    check_close(moved(run, losses), wanted, "float32")
    assert queue_update(run, losses, batch(run), None, 0.1).isfinite().all()


def whole(folder: Path, monkeypatch: pytest.MonkeyPatch, **changes: Any) -> dict[str, Any]:
    """Train to the end like the stage; return the metrics."""
    folder.mkdir()
    write_tiny(folder)
    params = tiny_params(folder, **{"dropout": 0.0, **changes})
    monkeypatch.chdir(folder)
    train_model(params.model, params.train, 1, *map(Path, PATHS))
    metrics: dict[str, Any] = json.loads((folder / "out" / "metrics.json").read_text(encoding="utf-8"))
    return metrics


def test_a_whole_training_is_that_of_the_cpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With data, updates, validation, checkpoints and export, the perplexity is the same."""
    found = whole(tmp_path / "gpu", monkeypatch)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    wanted = whole(tmp_path / "cpu", monkeypatch)
    assert found["validation_perplexity"] == pytest.approx(wanted["validation_perplexity"], rel=1e-3)


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")
@pytest.mark.parametrize("precision", PRECISIONS)
def test_two_gpus_train_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, precision: str) -> None:
    """Two processes have half a batch each and use NCCL; bfloat16 results agree up to rounding."""
    found = whole(tmp_path / "two", monkeypatch, workers=2, batch_sentences=4, precision=precision)
    wanted = whole(tmp_path / "one", monkeypatch, batch_sentences=8, precision=precision)
    rel = 1e-3 if precision == "float32" else 0.05
    assert found["validation_perplexity"] == pytest.approx(wanted["validation_perplexity"], rel=rel)
