"""Tests of the search that need a GPU; `make gpu-report` runs these."""

from pathlib import Path
from typing import Any

import pytest
import torch

from convs2s.config.translate import SearchPlace
from convs2s.fairseq.importer import SEARCH
from convs2s.package.translator import load
from convs2s.search import search as search_module
from convs2s.search.beam_search import BeamSearch
from convs2s.search.search import LiveBatch
from convs2s.search.stepwise_model import StepwiseModel
from tests.model.small import small_model
from tests.package.small_package import write_small_package

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch sees no GPU"),
]
TEXTS = ["Das ist ein Haus.", "noch ein Hund, und eins.", "", "der Hund aus das Haus und die Maus."]


@pytest.mark.parametrize("search", ["host", "device"])
@pytest.mark.parametrize(
    ("beam_size", "precision", "tolerance"),
    [(1, "float32", 1e-4), (5, "float32", 1e-4), (2, "bfloat16", 0.1)],
)
def test_translations_are_those_of_the_cpu(
    tmp_path: Path, beam_size: int, precision: str, tolerance: float, search: SearchPlace
) -> None:
    """Hypotheses, scores and attention agree for sentences of different lengths in one batch."""
    model = write_small_package(tmp_path)
    settings: dict[str, Any] = {"beam_size": beam_size, "n_best": 1}
    on_cpu = load(model, "cpu", precision="float32", **settings)
    on_gpu = load(model, "cuda", precision=precision, search=search, processes=2, **settings)
    expected = on_cpu.translate_n_best(TEXTS, keep_attention=True)
    found = on_gpu.translate_n_best(TEXTS, keep_attention=True)
    for (one,), (other,) in zip(found, expected, strict=True):
        assert one.score == pytest.approx(other.score, abs=tolerance)
        if precision == "float32":
            assert one.tokens == other.tokens
            assert one.attention is not None
            assert other.attention is not None
            assert one.attention.weights == pytest.approx(other.attention.weights, abs=tolerance)


@pytest.mark.parametrize("search", ["host", "device"])
@pytest.mark.parametrize(
    "settings",
    [
        {"beam_size": 4, "n_best": 3},
        {"beam_size": 12, "alpha": 1.0, "min_length": 3},
        {"beam_size": 3, "max_length_ratio": 0.0, "max_length_extra": 2.0},
        {"beam_size": 2, "members": 2},
    ],
    ids="-".join,
)
def test_hypotheses_are_those_of_the_cpu(
    tmp_path: Path, settings: dict[str, Any], search: SearchPlace
) -> None:
    """All of the n best, for one model and for an ensemble."""
    models = [write_small_package(tmp_path)] * settings.get("members", 1)
    changes = {"precision": "float32", **settings}
    changes.pop("members", None)
    on_gpu, on_cpu = load(models, "cuda", search=search, **changes), load(models, "cpu", **changes)
    found, expected = (
        [[(one.tokens, one.score) for one in hypotheses] for hypotheses in translator.translate_n_best(TEXTS)]
        for translator in (on_gpu, on_cpu)
    )
    for n_best, n_best_expected in zip(found, expected, strict=True):
        assert [tokens for tokens, _ in n_best] == [tokens for tokens, _ in n_best_expected]
        scores = [score for _, score in n_best_expected]
        assert [score for _, score in n_best] == pytest.approx(scores, abs=1e-4)


def test_steps_of_the_search_never_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """The host gives the GPU eight steps, then reads them; PyTorch raises an error if one of them waits."""
    model = StepwiseModel(small_model().cuda().eval().requires_grad_(False))
    source = torch.full((3, 8), 5, device="cuda")
    memory = model.encode(source)
    monkeypatch.setattr(model, "encode", lambda _: memory)
    plain = LiveBatch.list_allowed
    read = search_module.read_steps

    def list_allowed(self: LiveBatch, step: int, beams: int) -> Any:
        torch.cuda.set_sync_debug_mode("error")
        return plain(self, step, beams)

    def read_steps(steps: Any, device: torch.device) -> Any:
        torch.cuda.set_sync_debug_mode("default")
        return read(steps, device)

    monkeypatch.setattr(LiveBatch, "list_allowed", list_allowed)
    monkeypatch.setattr(search_module, "read_steps", read_steps)
    params = SEARCH.model_copy(update={"beam_size": 5})
    try:
        BeamSearch(params, True, "device").search(model, source, [20, 20, 3], [[3, 4], [], []])
    finally:
        torch.cuda.set_sync_debug_mode("default")


def test_texts_are_translated_beside_other_processes(tmp_path: Path) -> None:
    """Processes that are forked from one that uses a GPU must not use it, and give the same."""
    model = write_small_package(tmp_path)
    one, several = (load(model, "cuda", batch_sentences=1, processes=n) for n in (1, 3))
    texts = TEXTS * 40
    assert several.translate(texts) == one.translate(texts)
