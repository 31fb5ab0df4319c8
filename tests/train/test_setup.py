from collections.abc import Callable
from pathlib import Path
from typing import Any

import jaxtyping
import pytest
from torch.testing import assert_close

from convs2s.train.annealing import Annealing
from convs2s.train.loop import train
from convs2s.train.setup import annealing, build_training
from tests.train.tiny import ALONE, tiny_params, tiny_training, weights, write_tiny


def test_parameters_reach_the_training(tmp_path: Path) -> None:
    """Each arrives under its name in the paper."""
    training = tiny_training(
        tmp_path, label_smoothing=0.1, clip_norm=0.7, precision="bfloat16", anneal_against="best",
        anneal_after_epoch=4, patience=3, max_epochs=8, min_learning_rate=0.01, min_epochs_before_anneal=2,
    )  # fmt: skip
    assert (training.smoothing, training.clip_norm, training.state.precision) == (0.1, 0.7, "bfloat16")
    assert training.annealing == Annealing(0.25, 0.1, 0.01, True, 2, 4, 3, 8)
    assert annealing(tiny_params(tmp_path).train).against_best is False
    assert training.selection is None
    assert (len(training.train.source), len(training.valid.source)) == (150, 20)


@pytest.mark.parametrize(
    ("change", "max_positions", "message"),
    [
        (None, 9, r"sentence \d+ has 9 tokens.*EOS.*holds 8.*max_positions"),
        # There would be no perplexity to anneal by.
        (lambda folder: write_tiny(folder, valid=0), 32, "valid has 0 source and 0 target.*at least one"),
    ],
)
def test_data_that_do_not_fit_are_named(
    tmp_path: Path, change: Callable[[Path], None] | None, max_positions: int, message: str
) -> None:
    """This is found before any update, and the message has the remedy; 10 positions would do."""

    def build(max_positions: int) -> None:
        model = params.model.model_copy(update={"max_positions": max_positions})
        paths = tmp_path / "encoded", tmp_path / "vocabulary", tmp_path / "none.npz"
        build_training(model, params.train, 1, *paths, ALONE)

    write_tiny(tmp_path)
    params = tiny_params(tmp_path)
    build(10)
    if change:
        change(tmp_path)
    with pytest.raises(ValueError, match=message):
        build(max_positions)


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
