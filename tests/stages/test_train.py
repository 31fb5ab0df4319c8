"""The stage train passes its parameters and paths to the library, which tests/train tests."""

import inspect
from pathlib import Path

import pytest

from convs2s.model.description import digest_of_file
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
    paths = {name: tmp_path / name for name in ("encoded", "vocabulary", "candidates", "work", "out", "cost")}
    train.run(params.model, params.train, params.run, 7, **paths)
    (bound,) = given
    code = bound.arguments.pop("code")
    sections = {"model": params.model, "train": params.train, "run": params.run}
    assert bound.arguments == {**sections, "seed": 7, **paths}
    assert code["convs2s/train/loop.py"] == digest_of_file(Path("convs2s/train/loop.py"))
    assert "convs2s/decode/beam_search.py" not in code
