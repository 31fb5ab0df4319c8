"""Tests of the search that need a GPU; `make gpu-report` runs these."""

from pathlib import Path

import pytest
import torch

from convs2s.package.translator import load
from tests.package.small_package import write_small_package

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch sees no GPU"),
]
TEXTS = [
    "Das ist ein Haus.",
    "noch ein Hund, und eins.",
    "",
    "die Maus",
    "der Hund aus das Haus und die Maus.",
]


@pytest.mark.parametrize("beam_size", [1, 5])
def test_translations_are_those_of_the_cpu(tmp_path: Path, beam_size: int) -> None:
    """Hypotheses, scores and attention agree for sentences of different lengths in one batch."""
    model = write_small_package(tmp_path)
    found, wanted = (
        load(model, device, beam_size=beam_size, n_best=1).translate_n_best(TEXTS, keep_attention=True)
        for device in ("cuda", "cpu")
    )
    for (one,), (other,) in zip(found, wanted, strict=True):
        assert one.tokens == other.tokens
        assert one.score == pytest.approx(other.score, abs=1e-4)
        assert one.attention is not None
        assert other.attention is not None
        assert one.attention.weights == pytest.approx(other.attention.weights, abs=1e-4)


def test_bfloat16_translates(tmp_path: Path) -> None:
    """Scores are close to those of float32."""
    model = write_small_package(tmp_path)
    found, wanted = (
        load(model, "cuda", beam_size=2, n_best=1, precision=precision).translate_n_best(TEXTS)
        for precision in ("bfloat16", "float32")
    )
    for (one,), (other,) in zip(found, wanted, strict=True):
        assert one.score == pytest.approx(other.score, abs=0.1)
