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
TEXTS = ["Das ist ein Haus.", "noch ein Hund, und eins.", "", "der Hund aus das Haus und die Maus."]


@pytest.mark.parametrize(
    ("beam_size", "precision", "tolerance"),
    [(1, "float32", 1e-4), (5, "float32", 1e-4), (2, "bfloat16", 0.1)],
)
def test_translations_are_those_of_the_cpu(
    tmp_path: Path, beam_size: int, precision: str, tolerance: float
) -> None:
    """Hypotheses, scores and attention agree for sentences of different lengths in one batch."""
    model = write_small_package(tmp_path)
    found, expected = (
        load(model, device, beam_size=beam_size, n_best=1, precision=kind).translate_n_best(
            TEXTS, keep_attention=True
        )
        for device, kind in (("cuda", precision), ("cpu", "float32"))
    )
    for (one,), (other,) in zip(found, expected, strict=True):
        assert one.score == pytest.approx(other.score, abs=tolerance)
        if precision == "float32":
            assert one.tokens == other.tokens
            assert one.attention is not None
            assert other.attention is not None
            assert one.attention.weights == pytest.approx(other.attention.weights, abs=tolerance)
