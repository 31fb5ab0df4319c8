"""Averaging, Adam and the others: what is saved suffices to go on as if nothing had happened."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch.testing import assert_close

from convs2s.model.initialization import folded_weights
from convs2s.train.loop import validation_loss
from convs2s.train.running.checkpoint import load_mean, load_weights, read_checkpoint
from convs2s.train.setup import build_training
from tests.train.tiny import ALONE, tiny_params
from tests.train.work_folder.trainings import (
    EPOCHS,
    INPUTS,
    OUT,
    TINY,
    finish,
    interrupt,
    updates_of,
    validating,
)


def test_the_model_is_the_mean_of_the_best_epochs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mean is of the weights with their norm folded in, and is validated anew: it is another model."""
    real = validation_loss
    validating(monkeypatch, [3.0, 2.5, 2.7, 2.4, 2.6])
    checkpoints = interrupt(monkeypatch, after=10, average=2)
    assert [updates_of(path) for path in checkpoints] == [10, 9, 8, 6, 4]
    settings = tiny_params(Path(), max_epochs=EPOCHS, average=2, **TINY)
    training = build_training(settings.model, settings.train, 1, *INPUTS, ALONE)
    best = [read_checkpoint(checkpoints[i]) for i in (2, 4)]
    parts = []
    for checkpoint in best:
        load_weights(training.model, checkpoint, OUT)
        parts.append({name: weight.clone() for name, weight in folded_weights(training.model).items()})
    finish(average=2)
    found = load_file(OUT / "model" / "weights.safetensors")
    assert_close(found, {name: (parts[0][name] + parts[1][name]) / 2 for name in found})
    load_mean(training.model, best, OUT)
    perplexity = json.loads((OUT / "metrics.json").read_text())["validation_perplexity"]
    assert perplexity == pytest.approx(math.exp(real(training)))


def test_epochs_of_a_number_of_updates(monkeypatch: pytest.MonkeyPatch) -> None:
    """Passes through the data go on across validations: every batch comes once in each."""
    validating(monkeypatch, [3.0, 2.9, 2.8, 2.7, 2.6])
    settings: dict[str, Any] = {"validate_updates": 3, "max_epochs": 3}
    (last, *_) = interrupt(monkeypatch, after=7, **settings)
    state = read_checkpoint(last).state
    assert [record["updates"] for record in state.epochs] == [3, 6]
    assert (state.passes, state.batch, state.epoch_updates) == (3, 1, 1)
    finish(**settings)
    curve = (OUT / "curves" / "valid" / "perplexity.tsv").read_text().split()
    assert curve[2::2] == ["3", "6", "9"]


def test_tied_tables_are_one_in_training_and_two_in_the_model() -> None:
    """Whoever reads the model need not know."""
    finish(tied_embeddings=True, max_epochs=2)
    weights = load_file(OUT / "model" / "weights.safetensors")
    assert torch.equal(weights["output_layer.weight"], weights["target_embedding.words.weight"])
