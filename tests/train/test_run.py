"""Whole trainings: their outputs, and several processes."""

import contextlib
import io
import json
import multiprocessing
import os
from pathlib import Path
from typing import Any

import pytest
import torch
from filelock import FileLock, Timeout
from safetensors.torch import load_file
from torch.testing import assert_close

from convs2s.base.progress_bar import Progress
from convs2s.config.params import Params
from convs2s.train.running import run
from convs2s.train.running.launch import LAUNCHER
from convs2s.train.running.run import sum_up, train_model
from convs2s.train.running.work_folder import remove_ended
from tests.train.forks import launch_forks
from tests.train.tiny import PATHS, tiny_params, write_tiny


def prepare(folder: Path, pairs: int = 150, **changes: Any) -> Params:
    folder.mkdir()
    write_tiny(folder, pairs)
    return tiny_params(folder, **changes)


def in_process(folder: Path, params: Params, monkeypatch: pytest.MonkeyPatch) -> None:
    """Train in the folder, since relative paths are part of the fingerprint."""
    monkeypatch.chdir(folder)
    train_model(params.model, params.train, params.run, 1, *PATHS)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Train for four epochs of five updates; return the folder, in which `stderr` has what was printed."""
    folder = tmp_path_factory.mktemp("trained") / "a"
    params = prepare(folder, pairs=40, max_epochs=4)
    with pytest.MonkeyPatch.context() as monkeypatch, contextlib.redirect_stderr(io.StringIO()) as printed:
        in_process(folder, params, monkeypatch)
    (folder / "stderr").write_text(printed.getvalue(), encoding="utf-8")
    return folder


def read_perplexities(folder: Path) -> list[float]:
    """Return the validation perplexity of each epoch from the curve."""
    _, *rows = (folder / "out" / "curves" / "valid" / "perplexity.tsv").read_text().splitlines()
    return [float(row.split("\t")[1]) for row in rows]


def test_the_outputs_are_a_model_metrics_and_curves(trained: Path) -> None:
    """DVC caches these, so nothing else may be among them."""
    assert {path.name for path in (trained / "out").iterdir()} == {"model", "metrics.json", "curves"}
    model = trained / "out" / "model"
    assert {path.name for path in model.iterdir()} == {"model.json", "weights.safetensors"}


def test_metrics_count_epochs_and_updates(trained: Path) -> None:
    """40 pairs in batches of 8 are five updates per epoch."""
    metrics = json.loads((trained / "out" / "metrics.json").read_text())
    assert metrics["epochs"] == 4
    assert metrics["updates"] == 4 * 5
    assert len(read_perplexities(trained)) == 4


def test_the_perplexity_in_the_metrics_is_that_of_the_best_epoch(trained: Path) -> None:
    """The model has the weights of this epoch, not those of the last."""
    metrics = json.loads((trained / "out" / "metrics.json").read_text())
    perplexities = read_perplexities(trained)
    assert perplexities[metrics["best_epoch"] - 1] == pytest.approx(metrics["validation_perplexity"])
    assert min(perplexities) == pytest.approx(metrics["validation_perplexity"])


def test_a_training_says_why_it_ended_and_records_its_speed(trained: Path) -> None:
    """The report shows scores beside what they cost."""
    assert (trained / "stderr").read_text().endswith("Training ended: it has run for 4 epochs.\n")
    assert json.loads((trained / "cost").read_text())["target tokens/s"] > 0


def test_only_the_lock_is_left_of_an_ended_training(trained: Path) -> None:
    """Its checkpoints would fill the disk; a finished training needs none of them."""
    remove_ended(trained / "work")
    assert [path.name for path in (trained / "work").iterdir()] == ["lock"]


def test_no_other_training_writes_to_the_work_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two trainings in one folder would replace each other's checkpoints, so the first holds a lock."""
    folder = tmp_path / "a"
    refused = []

    def try_to_lock(*_: Any) -> None:
        with pytest.raises(Timeout):
            FileLock(folder / "work" / "lock", timeout=0).acquire()
        refused.append(True)

    monkeypatch.setattr(Progress, "add_epoch", try_to_lock)
    in_process(folder, prepare(folder, pairs=16, max_epochs=1), monkeypatch)
    assert refused == [True]


@pytest.mark.parametrize(
    ("batch_by", "precision"), [("sentences", "float32"), ("sentences", "bfloat16"), ("tokens", "float32")]
)
def test_two_workers_of_half_the_batch_give_the_weights_of_one(
    tmp_path: Path, batch_by: str, precision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """T13: gradients are summed over workers and divided by all their tokens, then clipped once.

    Half of the updates are clipped: if all were, their scale would be invisible.
    The workers are forks; test_launch tests how torchrun starts them.
    """
    monkeypatch.setattr(run, "launch", launch_forks)
    settings = {"batch_by": batch_by, "precision": precision, "clip_norm": 0.45, "dropout": 0.0}
    weights = {}
    metrics = {}
    for workers in (1, 2):
        folder = tmp_path / str(workers)
        sizes = {"workers": workers, "batch_sentences": 16 // workers, "max_tokens": 80 // workers}
        params = prepare(folder, pairs=60, max_epochs=2, **sizes, **settings)
        in_process(folder, params, monkeypatch)
        weights[workers] = load_file(folder / "out" / "model" / "weights.safetensors")
        metrics[workers] = json.loads((folder / "out" / "metrics.json").read_text())
    assert weights[1].keys() == weights[2].keys()
    absolute, relative = (2e-5, 1e-4) if precision == "float32" else (2e-2, 1e-2)
    for name, weight in weights[1].items():
        assert_close(weight, weights[2][name], atol=absolute, rtol=relative)
    assert metrics[1]["validation_perplexity"] == pytest.approx(
        metrics[2]["validation_perplexity"], rel=relative
    )
    assert metrics[1]["updates"] == metrics[2]["updates"]


def test_the_mean_of_epochs_is_validated_as_they_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With vocabulary selection, perplexity depends on the batches, which are those of all workers."""
    monkeypatch.setattr(run, "launch", launch_forks)
    slowly = {"max_epochs": 2, "batch_sentences": 4, "learning_rate": 1e-3, "min_learning_rate": 1e-9}
    selection = {"common": 2, "candidates": 1}
    params = prepare(tmp_path / "a", pairs=32, workers=2, average=2, selection=selection, **slowly)
    in_process(tmp_path / "a", params, monkeypatch)
    curve = Path("out", "curves", "valid", "perplexity.tsv").read_text().split()
    metrics = json.loads(Path("out", "metrics.json").read_text())
    assert metrics["validation_perplexity"] == pytest.approx(float(curve[-1]), rel=0.01)


def test_a_loss_beyond_all_measure_has_a_perplexity(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such a training ends as others do; its curve shows what is wrong."""
    params = prepare(tmp_path / "a", pairs=16, average=2, max_epochs=3, learning_rate=300.0)
    in_process(tmp_path / "a", params, monkeypatch)
    assert json.loads(Path("out", "metrics.json").read_text())["validation_perplexity"] > 1e300


def test_more_workers_than_gpus_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two processes on one GPU would only hinder each other; none is started."""
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(run, "launch", lambda *_: pytest.fail("workers were started"))
    params = prepare(tmp_path / "a", workers=2)
    with pytest.raises(ValueError, match=r"train\.workers: found 2 processes, but only 1 GPU"):
        in_process(tmp_path / "a", params, monkeypatch)


def test_the_cost_adds_up_over_interruptions() -> None:
    """Core-hours are of all cores and include validation; the speed is that of updates alone.

    A training that moved to a GPU has GPU-hours beside its core-hours, since one is not the other.
    """
    common = {"precision": "float32", "torch": "2.13.0", "training_seconds": 1200.0, "target_tokens": 60_000}
    cpu = common | {"device": "A CPU", "unit": "CPU core", "count": 2, "seconds": 1800.0}
    gpu = common | {"device": "A GPU", "unit": "GPU", "count": 1, "seconds": 3600.0}
    assert sum_up([cpu, gpu]) == {
        "hardware": "2 x A CPU, 1 x A GPU", "CPU core-hours": 1.0, "GPU-hours": 1.0, "target tokens/s": 50,
        "products in": "float32", "PyTorch": "2.13.0",
    }  # fmt: skip


def test_a_worker_whose_launcher_is_gone_does_not_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel ends it with the launcher, which may have died while Python started."""

    def work() -> None:
        os.environ[LAUNCHER] = "1"
        try:
            run.main()
        finally:  # not reached if the worker has been ended
            os._exit(9)

    monkeypatch.setattr("sys.argv", ["run"])
    worker = multiprocessing.get_context("fork").Process(target=work)
    worker.start()
    worker.join(60)
    assert worker.exitcode == 1
