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
    inputs, outputs = [tmp_path / name for name in ("encoded", "vocabulary", "candidates")], [tmp_path] * 3
    train.run(params.model, params.train, params.run, 7, *inputs, *outputs)
    own = tmp_path / "7", tmp_path / "7", tmp_path / "7.json"
    assert train_model.call_args.args == (params.model, params.train, params.run, 7, *inputs, *own)
    code = train_model.call_args.kwargs["code"]
    assert code["convs2s/train/loop.py"] == digest_of_file(Path("convs2s/train/loop.py"))
    assert "convs2s/decode/beam_search.py" not in code
