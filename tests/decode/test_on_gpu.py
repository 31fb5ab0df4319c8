"""Tests of the search that need a GPU; `make gpu-report` runs these."""

import itertools
from pathlib import Path
from typing import Any

import pytest
import torch

from convs2s.decode.device_search import LOOK, advance, start
from convs2s.decode.stepwise_model import StepwiseModel
from convs2s.package.translator import load
from tests.model.small import small_model
from tests.package.small_package import write_small_package

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch sees no GPU"),
]
TEXTS = ["Das ist ein Haus.", "noch ein Hund, und eins.", "", "der Hund aus das Haus und die Maus."]


@pytest.mark.parametrize("search", ["host", "device", "graphs"])
@pytest.mark.parametrize(
    ("beam_size", "precision", "tolerance"),
    [(1, "float32", 1e-4), (5, "float32", 1e-4), (2, "bfloat16", 0.1)],
)
def test_translations_are_those_of_the_cpu(
    tmp_path: Path, beam_size: int, precision: str, tolerance: float, search: str
) -> None:
    """Hypotheses, scores and attention agree for sentences of different lengths in one batch.

    The second time, recorded steps are replayed.
    """
    model = write_small_package(tmp_path)
    settings: dict[str, Any] = {"beam_size": beam_size, "n_best": 1}
    on_cpu = load(model, "cpu", precision="float32", **settings)
    on_gpu = load(model, "cuda", precision=precision, search=search, processes=2, **settings)
    expected = on_cpu.translate_n_best(TEXTS, keep_attention=True)
    found = [on_gpu.translate_n_best(TEXTS, keep_attention=True) for _ in range(2)]
    for (one,), (other,) in zip(itertools.chain(*found), expected * 2, strict=True):
        assert one.score == pytest.approx(other.score, abs=tolerance)
        if precision == "float32":
            assert one.tokens == other.tokens
            assert one.attention is not None
            assert other.attention is not None
            assert one.attention.weights == pytest.approx(other.attention.weights, abs=tolerance)


def test_steps_of_the_search_never_wait() -> None:
    """A look of the host gives the GPU eight steps; PyTorch raises an error if one of them waits."""
    model = StepwiseModel(small_model().cuda().eval().requires_grad_(False))
    source = torch.full((3, 8), 5, device="cuda")
    with torch.inference_mode():
        board = start(model, source, 5)
        torch.cuda.set_sync_debug_mode("error")
        try:
            for rules in (None, source):
                board, _ = advance(model, LOOK, True, board, rules)
        finally:
            torch.cuda.set_sync_debug_mode("default")


def test_texts_are_translated_beside_other_processes(tmp_path: Path) -> None:
    """Processes that are forked from one that uses a GPU must not use it, and give the same."""
    model = write_small_package(tmp_path)
    one, several = (load(model, "cuda", batch_sentences=1, processes=n) for n in (1, 3))
    texts = TEXTS * 300
    assert several.translate(texts) == one.translate(texts)
