from pathlib import Path
from typing import Any

import jaxtyping
import pytest
from torch.testing import assert_close

from convs2s.train.loop import train
from convs2s.train.setup import build_training
from tests.train.tiny import ALONE, tiny_params, tiny_training, weights, write_tiny


def test_a_sentence_that_does_not_fit_is_named(tmp_path: Path) -> None:
    """This is found before any update, and the message has the remedy; 10 positions would do."""

    def build(max_positions: int) -> None:
        model = params.model.model_copy(update={"max_positions": max_positions})
        paths = tmp_path / "encoded", tmp_path / "vocabulary", tmp_path / "none.npz"
        build_training(model, params.train, 1, *paths, ALONE)

    write_tiny(tmp_path)
    params = tiny_params(tmp_path)
    build(10)
    with pytest.raises(ValueError, match=r"sentence \d+ has 9 tokens.*EOS.*holds 8.*max_positions"):
        build(9)


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
