"""The stage train passes its parameters and paths to the library, which tests/train tests."""

from pathlib import Path
from unittest import mock

import pytest

from convs2s.model.description import digest_of_file
from pipelines.stages import train
from tests.train.tiny import tiny_params


def test_a_training_is_of_a_seed_and_of_the_code_in_dvc_yaml(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A checkpoint is of use only to the code that wrote it; other code may be edited in between."""
    monkeypatch.setattr(train, "train_model", train_model := mock.Mock())
    params = tiny_params(tmp_path)
    inputs = [tmp_path / name for name in ("encoded", "vocabulary", "candidates")]
    outputs = [tmp_path / name for name in ("work", "out", "costs")]
    train.run(params.model, params.train, params.run, 7, *inputs, *outputs)
    assert train_model.call_args.args == (params.model, params.train, params.run, 7, *inputs)
    passed = train_model.call_args.kwargs
    assert passed["work"] == tmp_path / "work" / "7"
    assert passed["out"] == tmp_path / "out" / "7"
    assert passed["cost"] == tmp_path / "costs" / "7.json"
    code = passed["code"]
    assert code["convs2s/train/loop.py"] == digest_of_file(Path("convs2s/train/loop.py"))
    assert "convs2s/search/beam_search.py" not in code
