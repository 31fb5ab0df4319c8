"""Tests of training that need a GPU; `make gpu-report` runs these."""

import contextlib
import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jaxtyping
import numpy as np
import pytest
import torch
from torch import Tensor

from convs2s.train import loss_in_parts, recorded_updates
from convs2s.train.batch_update import queue_update
from convs2s.train.distributed import Workers
from convs2s.train.loop import UpdateReport, train
from convs2s.train.loss import softmax_loss
from convs2s.train.loss_in_parts import LossInParts
from convs2s.train.running.checkpoint import HostMemory, Snapshot
from convs2s.train.training import Training
from tests.train.test_run import in_process, prepare
from tests.train.tiny import ALONE, batches, tiny_training, weights

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch sees no GPU"),
]
GPU = Workers(0, 1, torch.device("cuda", 0))
PRECISIONS = ["float32", "bfloat16"]
TOLERANCES = {"float32": 1e-4, "bfloat16": 0.05}


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


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_an_update_is_that_of_the_cpu(
    tmp_path: Path, precision: str, compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compares the change of every weight, the loss and the gradient's norm; batches have several parts."""
    # torch.compile cannot handle the tests' shape checks.
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    found = []
    for name, place in (("cpu", ALONE), ("gpu", GPU)):
        run = training(
            tmp_path / name,
            place,
            precision=precision,
            max_tokens=20,
            clip_norm=1e9,
            momentum=1e-9,
            compile=compiled,
        )
        before = {key: p.detach().clone() for key, p in run.model.named_parameters()}
        losses = run.losses(0.1).train()
        if compiled and place is GPU:
            losses.compile(dynamic=True)
        results = queue_update(run, losses, run.load(batches(run)[0]), 1.0)
        moved = {key: (p.detach() - before[key]).cpu() for key, p in run.model.named_parameters()}
        found.append({"results": results.cpu(), **moved})
    for key, expected in found[0].items():
        near = (found[1][key] - expected).abs().max() <= 1e-6 + TOLERANCES[precision] * expected.abs().max()
        assert near, f"{key}: expected {expected}, found {found[1][key]}"


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("selection", [None, {"common": 2, "candidates": 3}])
def test_the_host_does_not_wait_within_an_update(
    tmp_path: Path, precision: str, selection: dict[str, int] | None
) -> None:
    """The first update is not checked: it allocates memory and loads kernels."""
    run = training(tmp_path / "a", precision=precision, selection=selection, dropout=0.1, max_tokens=20)
    losses = run.losses(0.1).train()
    queue_update(run, losses, run.load(batches(run)[0]), 0.1)
    with waits_are_errors():
        results = queue_update(run, losses, run.load(batches(run)[0]), 0.1)
        run.load(batches(run)[0])  # the next one, while this one is computed
    assert results.isfinite().all()


@pytest.mark.parametrize("selection", [None, {"common": 2, "candidates": 3}])
def test_the_host_waits_once_an_update(tmp_path: Path, selection: dict[str, int] | None) -> None:
    """For the loss; the next batch is loaded by then, from pinned memory."""
    counts = []
    torch.cuda.set_sync_debug_mode("warn")
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for report in train(
                training(tmp_path / "a", selection=selection, max_tokens=20, pairs=80, max_epochs=1)
            ):
                if isinstance(report, UpdateReport):
                    counts.append(sum("synchronizing" in str(warning.message) for warning in caught))
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert len(counts) == 10
    assert np.diff(counts).tolist() == [1] * 9


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize(
    "changes",
    [
        {"label_smoothing": 0.0},
        {"optimizer": "adam", "learning_rate": 0.001, "warmup_updates": 10},
        {"selection": {"common": 2, "candidates": 3}},
        {"tied_embeddings": True},
        {"batch_by": "tokens", "batch_sentences": 30},
        {"max_tokens": 20},
    ],
    ids="-".join,
)
def test_losses_are_those_of_the_cpu(tmp_path: Path, precision: str, changes: dict[str, Any]) -> None:
    """Those of every update of two epochs, and of validation after each."""
    found, expected = (
        [
            report.loss if isinstance(report, UpdateReport) else report.record["validation_loss"]
            for report in train(
                training(tmp_path / name, place, precision=precision, pairs=40, max_epochs=2, **changes)
            )
        ]
        for name, place in (("gpu", GPU), ("cpu", ALONE))
    )
    assert found == pytest.approx(expected, rel=TOLERANCES[precision])


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


@pytest.mark.parametrize(
    ("precision", "optimizer"), [("float32", "nesterov"), ("bfloat16", "nesterov"), ("float32", "adam")]
)
def test_recorded_updates_are_those_that_are_not(
    tmp_path: Path, precision: str, optimizer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bit by bit: a training that is continued records later than one that was not interrupted.

    Each update has another batch, learning rate, count and dropout; one of the shapes has several parts.
    """
    results = []
    for most in (0, 2):
        monkeypatch.setattr(recorded_updates, "MOST_RECORDINGS", most)
        run = training(
            tmp_path / str(most),
            dropout=0.1,
            max_tokens=32,
            precision=precision,
            optimizer=optimizer,
            graphs=True,
        )
        assert run.recorded is not None
        loaded = [run.load(batch) for batch in (batches(run)[i] for i in (0, 1, -1, -2))]
        losses, queued = run.losses(0.1).train(), []
        for i in range(6 * len(loaded)):
            queued.append(queue_update(run, losses, loaded[i % len(loaded)], 0.01 / (1 + i)).cpu())
            run.state.updates += 1
        assert len(run.recorded.recordings) == most
        results.append((torch.stack(queued), weights(run).cpu()))
    assert len({loss for loss, _, _ in results[0][0].tolist()}) == len(results[0][0])
    assert torch.equal(results[0][0], results[1][0])
    assert torch.equal(results[0][1], results[1][1])


@pytest.mark.parametrize("precision", PRECISIONS)
def test_the_host_does_not_wait_for_a_replay(tmp_path: Path, precision: str) -> None:
    """Not for the copies to where it reads its batch and numbers, either."""
    run = training(tmp_path / "a", precision=precision, dropout=0.1, max_tokens=20, graphs=True)
    losses, batch = run.losses(0.1).train(), batches(run)[0]
    for _ in range(recorded_updates.PLAIN_UPDATES + 1):
        queue_update(run, losses, run.load(batch), 0.1)
    assert run.recorded is not None
    assert len(run.recorded.recordings) == 1
    with waits_are_errors():
        results = queue_update(run, losses, run.load(batch), 0.1)
    assert results.isfinite().all()


def test_each_replay_draws_its_own_dropout(tmp_path: Path) -> None:
    """Masks depend on the number of the update; at a learning rate of 0, only they differ between updates."""
    run = training(tmp_path / "a", dropout=0.5, graphs=True)
    losses, loaded, found = run.losses(0.1).train(), run.load(batches(run)[0]), []
    for run.state.updates in (0, 0, 0, 7, 8, 7):
        found.append(float(queue_update(run, losses, loaded, 0.0)[0]))
    assert run.recorded is not None
    assert len(run.recorded.recordings) == 1
    assert found[3] == found[5] != found[4]
    assert found[0] == found[1] not in found[3:]


def test_what_cannot_be_recorded_is_said(tmp_path: Path) -> None:
    """An edited model may wait for the GPU, which PyTorch calls an operation not permitted."""
    run = training(tmp_path / "a", graphs=True)

    def wait(features: Tensor, *others: Any) -> Any:
        assert features.sum().item() is not None
        return softmax_loss(features, *others)

    run.softmax = wait
    losses, loaded = run.losses(0.1).train(), run.load(batches(run)[0])
    for _ in range(recorded_updates.PLAIN_UPDATES):
        queue_update(run, losses, loaded, 0.1)
    with pytest.raises(ValueError, match=r"train\.graphs: an update could not be recorded: .* \.item\(\)"):
        queue_update(run, losses, loaded, 0.1)


@pytest.mark.parametrize("graphs", [False, True])
def test_an_update_for_which_memory_runs_out_is_made_with_less(
    tmp_path: Path, graphs: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the recordings, which changes no bit; or else with the loss in parts, within rounding."""
    results = []
    for is_full in (False, True):
        run = training(tmp_path / str(is_full), dropout=0.1, max_tokens=32, graphs=graphs)
        assert isinstance(run.softmax, LossInParts)
        run.softmax.part_bytes = 1

        def loss(features: Tensor, *others: Any, run: Training = run, is_full: bool = is_full) -> Any:
            is_made = not torch.cuda.is_current_stream_capturing()
            has_recordings = run.recorded is not None and bool(run.recorded.recordings)
            if is_full and (has_recordings and is_made if graphs else len(features) > 20):
                raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
            return softmax_loss(features, *others)

        monkeypatch.setattr(loss_in_parts, "softmax_loss", loss)
        loaded = [run.load(batch) for batch in (batches(run)[i] for i in (0, 1, -1))]
        losses, queued = run.losses(0.1).train(), []
        lack = "beside the recorded ones" if graphs else "all scores of an update at once"
        with pytest.warns(UserWarning, match=lack) if is_full else contextlib.nullcontext():
            for i in (0, 0, 0, 0, 1, 1, 2, 0):
                queued.append(queue_update(run, losses, loaded[i], 0.01).cpu())
                run.state.updates += 1
        assert run.recorded is None or bool(run.recorded.recordings) != is_full
        results.append((torch.stack(queued), weights(run).cpu()))
    for found, expected in zip(results[1], results[0], strict=True):
        assert (
            torch.equal(found, expected) if graphs else torch.allclose(found, expected, rtol=1e-4, atol=1e-5)
        )


def test_a_snapshot_is_whole_before_training_goes_on(tmp_path: Path) -> None:
    """A thread writes it while the next updates change the weights; each overwrites the one before."""
    run, memory = training(tmp_path / "a"), HostMemory()
    losses, loaded = run.losses(0.1).train(), run.load(batches(run)[0])
    for _ in range(2):
        queue_update(run, losses, loaded, 0.1)
        found = Snapshot.take(run, {}, memory).tensors
        copies = {name: tensor.clone() for name, tensor in found.items()}
        expected = Snapshot.take(run, {}).tensors
        assert copies.keys() == expected.keys()
        assert all(tensor.is_pinned() for tensor in found.values())
        assert all(torch.equal(copies[name], tensor) for name, tensor in expected.items())


def perplexity(folder: Path, monkeypatch: pytest.MonkeyPatch, **changes: Any) -> float:
    """Train to the end like the stage; return the perplexity."""
    in_process(folder, prepare(folder, **{"dropout": 0.0, **changes}), monkeypatch)
    metrics = json.loads((folder / "out" / "metrics.json").read_text())
    return float(metrics["validation_perplexity"])


@pytest.mark.parametrize("graphs", [False, True])
def test_a_whole_training_is_that_of_the_cpu(
    tmp_path: Path, graphs: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With data, updates, validation, checkpoints and export, the perplexity is the same."""
    found = perplexity(tmp_path / "gpu", monkeypatch, graphs=graphs)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    assert found == pytest.approx(perplexity(tmp_path / "cpu", monkeypatch), rel=1e-3)


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")
@pytest.mark.parametrize("precision", PRECISIONS)
def test_two_gpus_train_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, precision: str) -> None:
    """Two processes have half a batch each and use NCCL; bfloat16 results agree up to rounding."""
    found = perplexity(tmp_path / "two", monkeypatch, workers=2, batch_sentences=4, precision=precision)
    expected = perplexity(tmp_path / "one", monkeypatch, batch_sentences=8, precision=precision)
    assert found == pytest.approx(expected, rel=1e-3 if precision == "float32" else 0.05)
