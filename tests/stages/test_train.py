"""The stage train passes its parameters and paths to the library, which tests/train tests."""

import inspect
from pathlib import Path

import pytest

from convs2s.train.run import train_model
from pipelines.stages import train
from tests.train.tiny import tiny_params


def test_the_stage_trains_with_what_it_is_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each argument must arrive under its own name, or one folder would be read as another."""
    given = []
    monkeypatch.setattr(
        train,
        "train_model",
        lambda *args, **named: given.append(inspect.signature(train_model).bind(*args, **named)),
    )
    params = tiny_params(tmp_path)
    paths = {name: tmp_path / name for name in ("encoded", "vocabulary", "candidates", "work", "out")}
    (tmp_path / "train.txt").write_text("param train.dropout 0.1\ncode 1 loop\ncode 2 loss\n")
    train.run(params.model, params.train, 7, tmp_path / "train.txt", **paths)
    (bound,) = given
    code = {"loop": "1", "loss": "2"}
    assert bound.arguments == {"model": params.model, "train": params.train, "seed": 7, **paths, "code": code}
