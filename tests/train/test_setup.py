import os
from pathlib import Path
from typing import Any

import jaxtyping
import numpy as np
import pytest
import torch
from torch.testing import assert_close

from convs2s.train.annealing import Annealing
from convs2s.train.loop import train
from convs2s.train.setup import annealing, build_training, make_gpus_deterministic
from tests.train.tiny import ALONE, tiny_params, tiny_training, weights, write_tiny


def test_the_seed_decides_the_initial_weights(tmp_path: Path) -> None:
    """Earlier random numbers have no effect."""
    first = weights(tiny_training(tmp_path))
    torch.rand(7)
    assert torch.equal(weights(tiny_training(tmp_path)), first)


def test_parameters_reach_the_training(tmp_path: Path) -> None:
    """Each arrives under its name in the paper."""
    training = tiny_training(
        tmp_path, label_smoothing=0.1, clip_norm=0.7, precision="bfloat16", anneal_against="best",
        anneal_after_epoch=4, patience=3, max_epochs=8, min_learning_rate=0.01, min_epochs_before_anneal=2,
    )  # fmt: skip
    assert (training.smoothing, training.clip_norm, training.precision) == (0.1, 0.7, torch.bfloat16)
    assert training.annealing == Annealing(0.25, 0.1, 0.01, True, 2, 4, 3, 8)
    assert annealing(tiny_params(tmp_path).train).against_best is False
    assert training.selection is None
    assert (len(training.train.source), len(training.valid.source)) == (150, 20)


def build(folder: Path, max_positions: int = 32) -> None:
    params = tiny_params(folder)
    model = params.model.model_copy(update={"max_positions": max_positions})
    build_training(
        model, params.train, 1, folder / "encoded", folder / "vocabulary", folder / "none.npz", ALONE
    )


def test_a_sentence_beyond_the_position_table_is_named(tmp_path: Path) -> None:
    """This is found before any update, and the message has the remedy."""
    write_tiny(tmp_path)
    lengths = np.load(tmp_path / "encoded" / "valid" / "target.offsets.npy")
    longest = int(np.diff(lengths).max())
    build(tmp_path, max_positions=longest + 1)
    with pytest.raises(
        ValueError, match=rf"sentence \d+ has {longest} tokens.*EOS.*holds {longest - 1}.*max_positions"
    ):
        build(tmp_path, max_positions=longest)


def test_an_empty_corpus_is_refused(tmp_path: Path) -> None:
    """There would be nothing to train on, or no perplexity to anneal by."""
    write_tiny(tmp_path, valid=0)
    with pytest.raises(ValueError, match=r"valid has 0 source and 0 target sentences.*at least one"):
        build(tmp_path)


@pytest.mark.parametrize(("split", "side"), [("train", "source"), ("valid", "target")])
def test_ids_beyond_the_vocabulary_are_refused(tmp_path: Path, split: str, side: str) -> None:
    """Each side has its own vocabulary; a damaged file must not index past the embeddings."""
    write_tiny(tmp_path)
    build(tmp_path)
    path = tmp_path / "encoded" / split / f"{side}.ids.npy"
    ids = np.load(path)
    ids[0] = 60_000
    np.save(path, ids)
    with pytest.raises(
        ValueError, match=rf"{split}/{side}\.ids\.npy: expected ids from 1 to .* found 1 to 60,000"
    ):
        build(tmp_path)


def test_on_gpus_float32_is_float32_and_no_memory_is_filled(monkeypatch: pytest.MonkeyPatch) -> None:
    """By default, PyTorch's convolutions use TF32, and deterministic mode writes all memory twice."""
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", True)
    monkeypatch.setattr(torch.utils.deterministic, "fill_uninitialized_memory", True)
    monkeypatch.setattr(torch, "use_deterministic_algorithms", lambda *_, **__: None)
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":16:8")
    make_gpus_deterministic()
    assert not torch.backends.cudnn.allow_tf32
    assert not torch.utils.deterministic.fill_uninitialized_memory  # type: ignore[attr-defined]
    assert os.environ["CUBLAS_WORKSPACE_CONFIG"] == ":16:8"


def test_compiling_needs_a_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise torch.compile would fail in the first update, with pages of its own."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(
        ValueError, match=r"train\.compile: expected a C\+\+ compiler, found no g\+\+ or clang\+\+"
    ):
        tiny_training(tmp_path, compile=True)


@pytest.mark.slow
def test_a_compiled_training_is_the_plain_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An epoch of one update; torch.compile cannot handle the tests' shape checks."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    found = []
    for name, compiled in (("plain", False), ("compiled", True)):
        settings: dict[str, Any] = {"dropout": 0.0, "max_epochs": 1, "compile": compiled}
        (tmp_path / name).mkdir()
        run = tiny_training(tmp_path / name, pairs=8, layers=1, max_tokens=1000, **settings)
        list(train(run))
        found.append(weights(run))
    assert_close(found[1], found[0], atol=1e-5, rtol=1e-4)
