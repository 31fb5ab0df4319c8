"""Whole trainings: their outputs, and several processes."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from filelock import FileLock, Timeout
from safetensors.torch import load_file
from torch.testing import assert_close

from convs2s.config.params import Params
from convs2s.train import run
from convs2s.train.launch import launch
from convs2s.train.run import Paths, train_model
from convs2s.train.work_folder import remove_ended
from convs2s.watch.training import Progress
from tests.train.forks import launch_forks
from tests.train.tiny import ALONE, tiny_params, write_tiny


def prepare(folder: Path, pairs: int = 150, **changes: Any) -> Params:
    folder.mkdir()
    write_tiny(folder, pairs)
    return tiny_params(folder, **changes)


def in_process(folder: Path, params: Params, monkeypatch: pytest.MonkeyPatch) -> None:
    """Train in the folder, since relative paths are part of the fingerprint."""
    monkeypatch.chdir(folder)
    train_model(params.model, params.train, params.run, 1, *map(Path, Paths._fields))


def test_outputs_are_a_model_metrics_and_curves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """DVC caches these; only the lock stays in the work folder, as a finished training needs nothing else."""
    folder = tmp_path / "a"
    seen = []
    add_epoch = Progress.add_epoch

    def see(progress: Progress, *args: Any) -> None:
        add_epoch(progress, *args)
        with pytest.raises(Timeout):  # no other training may write here
            FileLock(folder / "work" / "lock", timeout=0).acquire()
        seen.append(args[0]["validation_perplexity"])

    monkeypatch.setattr(Progress, "add_epoch", see)
    in_process(folder, prepare(folder, pairs=40, max_epochs=4), monkeypatch)
    metrics = json.loads((folder / "out" / "metrics.json").read_text())
    assert metrics["epochs"] == 4
    assert metrics["updates"] == 4 * 5
    assert 1 <= metrics["best_epoch"] <= 4
    curve = (folder / "out" / "curves" / "valid" / "perplexity.tsv").read_text().splitlines()
    assert len(curve) == 1 + 4
    perplexities = [float(line.split("\t")[1]) for line in curve[1:]]
    assert perplexities[metrics["best_epoch"] - 1] == pytest.approx(metrics["validation_perplexity"])
    assert seen == pytest.approx(perplexities)
    assert sorted(path.name for path in (folder / "out" / "model").iterdir()) == [
        "model.json",
        "weights.safetensors",
    ]
    remove_ended(folder / "work")
    assert [path.name for path in (folder / "work").iterdir()] == ["lock"]
    assert json.loads((folder / "cost").read_text())["target tokens/s"] > 0
    assert capsys.readouterr().err.endswith("Training ended: it has run for 4 epochs.\n")


@pytest.mark.parametrize(
    ("batch_by", "precision", "start"),
    [
        pytest.param("sentences", "float32", launch, marks=pytest.mark.slow),
        pytest.param("sentences", "bfloat16", launch_forks, marks=pytest.mark.slow),
        ("tokens", "float32", launch_forks),
    ],
    ids=["sentences", "bfloat16", "tokens"],
)
def test_two_workers_of_half_the_batch_give_the_weights_of_one(
    tmp_path: Path,
    batch_by: str,
    precision: str,
    start: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """T13: gradients are summed over workers and divided by all their tokens, then clipped once.

    Half of the updates are clipped: if all were, their scale would be invisible.
    By default the workers are forks; test_launch tests how torchrun starts them.
    """
    monkeypatch.setattr(run, "launch", start)
    results = {}
    for workers in (1, 2):
        folder = tmp_path / str(workers)
        params = prepare(
            folder,
            pairs=60,
            workers=workers,
            clip_norm=0.45,
            dropout=0.0,
            batch_by=batch_by,
            precision=precision,
            batch_sentences=16 // workers,
            max_tokens=80 // workers,
            max_epochs=2,
        )
        in_process(folder, params, monkeypatch)
        results[workers] = load_file(folder / "out" / "model" / "weights.safetensors")
        results[-workers] = json.loads((folder / "out" / "metrics.json").read_text())
    assert results[1].keys() == results[2].keys()
    absolute, relative = (2e-5, 1e-4) if precision == "float32" else (2e-2, 1e-2)
    for name, weight in results[1].items():
        assert_close(weight, results[2][name], atol=absolute, rtol=relative)
    assert results[-1]["validation_perplexity"] == pytest.approx(
        results[-2]["validation_perplexity"], rel=relative
    )
    assert results[-1]["updates"] == results[-2]["updates"]


def test_the_mean_of_epochs_is_validated_as_they_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With vocabulary selection, perplexity depends on the batches, which are those of all workers."""
    monkeypatch.setattr(run, "launch", launch_forks)
    params = prepare(
        tmp_path / "a",
        pairs=32,
        workers=2,
        average=2,
        max_epochs=2,
        batch_sentences=4,
        learning_rate=1e-3,
        min_learning_rate=1e-9,
        selection={"common": 2, "candidates": 1},
    )
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
    with pytest.raises(ValueError, match=r"train\.workers: found 2, but only 1 GPU"):
        in_process(tmp_path / "a", params, monkeypatch)


@pytest.mark.parametrize(
    ("load", "threads", "noted"), [(99.0, None, True), (0.5, None, False), (99.0, "1", False)]
)
def test_a_busy_machine_is_noted_with_the_remedy(
    load: float,
    threads: str | None,
    noted: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """By default, threads of a busy machine mostly wait for each other."""
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if threads:
        monkeypatch.setenv("OMP_NUM_THREADS", threads)
    monkeypatch.setattr(os, "getloadavg", lambda: (load, 0.0, 0.0))
    run.warn_of_load(ALONE)
    assert ("faster with OMP_NUM_THREADS=1" in capsys.readouterr().err) == noted
