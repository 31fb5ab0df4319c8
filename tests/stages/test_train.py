"""The stage train as DVC runs it: interrupted, and with several processes."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file
from torch.testing import assert_close

from convs2s.config.params import Params
from convs2s.model.loading import load_model
from convs2s.text.corpus.encoded import EncodedCorpus
from convs2s.train.cost import file_name, read_sessions
from convs2s.train.loop import EpochReport, State, UpdateReport
from pipelines.stages.train import Progress, prints_of, run
from tests.train.test_loop import ALONE
from tests.train.tiny import ROOT, TYPES, tiny_params, write_tiny

PATHS = ("encoded", "vocabulary", "candidates", "work", "out")


def start(folder: Path) -> subprocess.Popen[str]:
    """Start the stage in a process of its own, in the folder with its params.yaml."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    command = [sys.executable, "-m", "pipelines.stages.train", "1", *PATHS]
    return subprocess.Popen(command, cwd=folder, env=environment, stderr=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen[str]) -> str:
    """Wait for the stage's end; return what it printed."""
    _, errors = process.communicate(timeout=240)
    assert process.returncode == 0, errors
    return errors


def prepare(folder: Path, **changes: object) -> Params:
    folder.mkdir()
    write_tiny(folder)
    return tiny_params(folder, **changes)


def in_process(folder: Path, params: Params) -> None:
    run(params.model, params.train, 1, *(folder / name for name in PATHS))


def test_outputs_are_a_model_metrics_and_curves(tmp_path: Path) -> None:
    """What DVC caches; the checkpoints are gone, for a finished training needs none; what it took is kept."""
    folder = tmp_path / "a"
    in_process(folder, prepare(folder, max_epochs=4))
    metrics = json.loads((folder / "out" / "metrics.json").read_text())
    assert metrics["epochs"] == 4
    assert metrics["updates"] == 4 * 19
    assert 1 <= metrics["best_epoch"] <= 4
    curve = (folder / "out" / "curves" / "valid" / "perplexity.tsv").read_text().splitlines()
    assert len(curve) == 1 + 4
    assert float(curve[metrics["best_epoch"]].split("\t")[1]) == pytest.approx(
        metrics["validation_perplexity"]
    )
    assert sorted(path.name for path in (folder / "out" / "model").iterdir()) == [
        "model.json",
        "weights.safetensors",
    ]
    assert [path.name for path in (folder / "work").iterdir()] == ["costs"]
    (session,) = read_sessions(folder / "work/costs" / file_name(folder / "out/model/weights.safetensors"))
    assert (session.first, session.last) == (0, 4 * 19)
    corpus = EncodedCorpus.open(folder / "encoded" / "train", "target")
    assert session.target_tokens == 4 * corpus.lengths.sum()
    assert 0 < (session.training_seconds or 0) < session.seconds


def test_killed_in_the_middle_training_ends_as_if_never_interrupted(tmp_path: Path) -> None:
    """kill -9 within an epoch, then again: same weights, metrics and curves to the last bit."""
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    in_process(whole, prepare(whole, max_epochs=20))
    prepare(broken, max_epochs=20)
    process = start(broken)
    checkpoint = broken / "work" / "checkpoint.safetensors"
    deadline = time.monotonic() + 120
    while not checkpoint.exists() or updates_of(checkpoint) < 65:  # in the fourth epoch of 19 updates
        assert process.poll() is None, "training ended before it could be killed"
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (broken / "out").exists()
    assert "Training continues from work/checkpoint.safetensors" in finish(start(broken))
    for name in (
        "model/weights.safetensors",
        "metrics.json",
        "curves/train/loss.tsv",
        "curves/valid/perplexity.tsv",
    ):
        assert (broken / "out" / name).read_bytes() == (whole / "out" / name).read_bytes(), name
    first, second = read_sessions(next((broken / "work" / "costs").iterdir()))
    assert 0 < first.last == second.first < second.last == 20 * 19
    (only,) = read_sessions(next((whole / "work" / "costs").iterdir()))
    assert (first.target_tokens or 0) + (second.target_tokens or 0) == only.target_tokens


RECORD = {
    "epoch": 1, "updates": 2, "learning_rate": 0.25, "training_loss": 3.0, "validation_perplexity": 9.5
}  # fmt: skip


def test_speed_is_that_of_updates_without_validation(capsys: pytest.CaptureFixture[str]) -> None:
    """Which may take half an epoch's time; each epoch has its own."""
    progress = Progress()
    for seconds, wanted in ((4.0, "8.0 s, 25 target"), (1.0, "2.0 s, 100 target")):
        for update in (1, 2):
            report = UpdateReport(1, update, 3.0, 0.5, 0.25, 100, 8, 2, None)
            progress.show(report, State(batch=update), seconds)
        progress.epoch(EpochReport(RECORD, is_best=False), seconds=50.0)
        assert f"perplexity 9.500, training {wanted} tokens/s, validation 50.0 s\n" in capsys.readouterr().err


def test_an_epoch_that_was_interrupted_in_its_validation_ends(capsys: pytest.CaptureFixture[str]) -> None:
    """The process that goes on from there has made no update of it, whose speed it could tell."""
    Progress().epoch(EpochReport(RECORD, is_best=False), seconds=50.0)
    assert capsys.readouterr().err.endswith("perplexity 9.500, training 0.0 s, validation 50.0 s\n")


def updates_of(checkpoint: Path) -> int:
    with safe_open(checkpoint, framework="pt") as file:
        return int(json.loads(file.metadata()["state"])["updates"])


@pytest.mark.parametrize("batch_by", ["sentences", "tokens"])
def test_two_workers_of_half_the_batch_give_the_weights_of_one(tmp_path: Path, batch_by: str) -> None:
    """T13: gradients are summed over workers and divided by all their tokens, then clipped once."""
    results = {}
    for workers in (1, 2):
        folder = tmp_path / str(workers)
        prepare(
            folder,
            workers=workers,
            dropout=0.0,
            batch_by=batch_by,
            batch_sentences=16 // workers,
            max_tokens=80 // workers,
            max_epochs=2,
        )
        finish(start(folder))
        results[workers] = load_file(folder / "out" / "model" / "weights.safetensors")
        results[-workers] = json.loads((folder / "out" / "metrics.json").read_text())
    assert results[1].keys() == results[2].keys()
    for name, weight in results[1].items():
        assert_close(weight, results[2][name], atol=2e-5, rtol=1e-4)
    assert results[-1]["validation_perplexity"] == pytest.approx(
        results[-2]["validation_perplexity"], rel=1e-4
    )
    assert results[-1]["updates"] == results[-2]["updates"]


def test_a_sentence_beyond_the_position_table_is_named(tmp_path: Path) -> None:
    """Before any update, with what to change."""
    folder = tmp_path / "a"
    prepare(folder)
    lengths = np.load(folder / "encoded" / "valid" / "target.offsets.npy")
    longest = int(np.diff(lengths).max())
    params = tiny_params(folder)
    short = params.model.model_copy(update={"max_positions": longest})
    with pytest.raises(
        ValueError, match=rf"sentence \d+ has {longest} tokens.*holds {longest - 1}.*max_positions"
    ):
        run(short, params.train, 1, *(folder / name for name in PATHS))


def test_more_workers_than_gpus_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two processes on one GPU would only hinder each other."""
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    folder = tmp_path / "a"
    params = prepare(folder, workers=2)
    with pytest.raises(ValueError, match=r"train\.workers: found 2, but this machine shows 1 GPU"):
        in_process(folder, params)


def test_without_selection_a_training_depends_on_what_it_did_before_there_was_any(tmp_path: Path) -> None:
    """So that its checkpoints are continued; with it, candidates of another corpus start it afresh."""
    folder = tmp_path / "a"
    plain = prepare(folder)
    selecting = tiny_params(folder, selection={"common": 2, "candidates": 5})
    inputs = 1, folder / "encoded", folder / "candidates" / "candidates.npz", ALONE
    without, with_it = (prints_of(p.model, p.train, *inputs) for p in (plain, selecting))
    assert with_it.keys() - without.keys() == {"selection", str(inputs[2])}
    assert with_it["selection"] == '{"common": 2, "candidates": 5}'
    assert all(with_it[name] == value for name, value in without.items())


def test_with_selection_the_metrics_tell_the_types_of_a_batch(tmp_path: Path) -> None:
    """And progress does; the model is stored as any other."""
    folder = tmp_path / "a"
    prepare(folder, max_epochs=1, selection={"common": 2, "candidates": 5})
    printed = finish(start(folder))
    selected = json.loads((folder / "out" / "metrics.json").read_text())["selected_types"]
    assert 5 < selected < TYPES
    assert f"{selected:,.0f} target types" in printed
    assert load_model(folder / "out" / "model").output_layer.out_features == TYPES
