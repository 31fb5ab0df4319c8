"""Exported parts agree with the model, for any number of sentences, hypotheses and tokens."""

import io
import json
import math
import re
import runpy
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from convs2s.cli import main
from convs2s.config.model import ModelParams
from convs2s.decode.beam_search import BeamSearch
from convs2s.decode.stepwise_model import StepwiseModel
from convs2s.exchange import export, export_check
from convs2s.exchange.export_parts import DecoderStepPart, EncoderPart
from convs2s.ids.vocabulary import EOS, PAD, Vocabulary, write_vocabulary
from convs2s.model.seq2seq import Seq2Seq
from convs2s.model.storage import save_model
from tests.golden import NAMES, golden_model
from tests.package.small_package import MODEL

# Different widths, a layer without memory and one without attention.
VARIED = MODEL.model_copy(
    update={"decoder_widths": [8, 6], "decoder_kernels": [1, 4], "attention": [False, True]}
)


def needs_onnx() -> Any:
    """Return onnxruntime, or skip the test."""
    pytest.importorskip("onnx", reason="needs the package onnx")
    pytest.importorskip("onnxscript", reason="needs the package onnxscript")
    return pytest.importorskip("onnxruntime", reason="needs the package onnxruntime")


def small_model(params: ModelParams = VARIED) -> Seq2Seq:
    """Return a model with weights by formula, for which greedy search writes different tokens."""
    model = Seq2Seq(params, 11, 13, padding_id=PAD, dropout=0.0)
    with torch.no_grad():
        for i, parameter in enumerate(model.parameters()):
            n = torch.arange(parameter.numel(), dtype=torch.float64)
            parameter.copy_(torch.sin(n * n * 0.731 + i).float().view_as(parameter))
    return model.eval().requires_grad_(False)


def save(folder: Path, params: ModelParams = VARIED) -> Path:
    save_model(folder, small_model(params), params, 11, 13, PAD)
    return folder


def parts(model: Seq2Seq) -> tuple[EncoderPart, DecoderStepPart, export_check.Run]:
    """Return both parts of a model, and the second as a function of single tensors."""
    step = DecoderStepPart(model)

    def run_step(*inputs: Any) -> Sequence[Tensor]:
        logits, attention, windows = step(*inputs[:5], list(inputs[5:]))
        return [logits, attention, *windows]

    return EncoderPart(model), step, run_step


@pytest.mark.parametrize("name", NAMES)
def test_the_parts_together_are_the_model(name: str) -> None:
    """Run step by step on padded sentences, the parts must agree with the model for every hypothesis."""
    model = golden_model(name)
    encoder, step, run_step = parts(model)
    assert export_check.compare(model, step, encoder, run_step) < 1e-5


def test_an_exported_model_translates_elsewhere(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command runs both kinds of files at sizes that were not traced; the example, only onnxruntime's."""
    needs_onnx()
    folder, out = save_with_words(tmp_path / "model"), tmp_path / "out"
    (folder / "bpe.codes").write_text("", encoding="utf-8")  # of an imported model
    assert main(["export", "--model", str(folder), "--out", str(out)]) == 0
    written = capsys.readouterr()
    assert "torch.export differs from the model by at most" in written.out
    assert "ONNX differs from the model by at most" in written.out
    assert written.err == ""
    assert sorted(path.name for path in out.iterdir()) == [
        "bpe.codes", "decoder_step.onnx", "decoder_step.pt2", "encoder.onnx", "encoder.pt2", "export.json",
        "segmentation.json", "source_vocabulary.json", "target_vocabulary.json", "translate.py",
    ]  # fmt: skip
    check_example(out, monkeypatch, capsys)
    facts = json.loads((out / "export.json").read_text(encoding="utf-8"))
    assert (facts["max_source_tokens"], facts["max_target_tokens"]) == (31, 31)
    names = facts["parts"]["decoder_step"]["inputs"]
    assert names == ["tokens", "position", "keys", "values", "padding", "window_0"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [
        {"source_positions": False, "target_positions": False},
        {"decoder_widths": [8], "decoder_kernels": [1], "attention": [True]},
        {"extra_scaling": False, "max_positions": 4},
    ],
)
def test_models_of_other_kinds_are_exported(
    changes: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some models have no positions, no memory or very few positions; the command itself compares outputs."""
    needs_onnx()
    monkeypatch.setattr(export, "LARGE", 0)
    folder = save(tmp_path / "model", VARIED.model_copy(update=changes))
    assert main(["export", "--model", str(folder), "--out", str(tmp_path / "out")]) == 0
    assert (tmp_path / "out" / "encoder.onnx.data").is_file()  # an ONNX file cannot hold 2 GiB


def save_with_words(folder: Path) -> Path:
    """Write a model folder with the source entries a to h and the target entries A to J."""
    save(folder)
    for side, entries in (("source", "abcdefgh"), ("target", "ABCDEFGHIJ")):
        write_vocabulary(folder / f"{side}.tsv", [(entry, 1) for entry in entries])
    (folder / "segmentation.json").write_text('{"kind": "word"}', encoding="utf-8")
    return folder


def check_example(out: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Compare the exported example's output with our own greedy search."""
    lines = ["a b c d e", "h", "", "g zzz </s> <pad> a a b"]
    monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
    runpy.run_path(str(out / "translate.py"), run_name="__main__")
    imported = re.findall(r"^(?:import|from) (\w+)", (out / "translate.py").read_text(encoding="utf-8"), re.M)
    assert {*imported} <= {"json", "sys", "pathlib", "typing", "numpy", "onnxruntime"}
    source = Vocabulary("abcdefgh")
    search = BeamSearch(1, 1.0, 0, 1, legacy_eos=False, keep_attention=False)
    wanted = []
    for line in lines:
        ids = [*source.ids(line.split()), EOS]
        [[best]] = search.search(StepwiseModel(small_model()), torch.tensor([ids]), [2 * len(ids) + 8])
        wanted.append(" ".join(Vocabulary("ABCDEFGHIJ").entry(id_) for id_ in best.tokens[:-1]))
    assert capsys.readouterr().out.splitlines() == wanted
    assert len({tuple(line.split()[:3]) for line in wanted}) > 1, "the source has no effect"


def wrong(run: Callable[..., Sequence[Tensor]], place: int, change: Callable[[Tensor], Tensor]) -> Any:
    """Return the part with one output changed."""

    def other(*inputs: Any) -> Sequence[Tensor]:
        outputs = list(run(*inputs))
        outputs[place] = change(outputs[place])
        return outputs

    return other


def test_a_part_that_differs_is_an_error() -> None:
    """Any output may differ in values or shape; a wrong window shows in the logits of the next step."""
    model = golden_model("plain")
    encoder, step, run_step = parts(model)
    for place, name in ((0, "keys"), (1, "values")):
        with pytest.raises(ValueError, match=f"The exported {name} differ from the model's:"):
            export_check.compare(model, step, wrong(encoder, place, lambda x: x + 0.01), run_step)
    for place, name in ((0, "logits"), (1, "attention"), (2, "logits")):
        with pytest.raises(ValueError, match=f"The exported {name} differ from the model's:"):
            export_check.compare(model, step, encoder, wrong(run_step, place, lambda x: x + 0.01))
    with pytest.raises(ValueError, match=r"keys differ from the model's: .*shape"):
        export_check.compare(model, step, wrong(encoder, 0, lambda x: x[:, :, 1:]), run_step)
    with pytest.raises(ValueError, match=r"(?s)values differ from the model's: .*nan"):
        export_check.compare(model, step, wrong(encoder, 1, lambda x: x * math.nan), run_step)


@pytest.mark.parametrize(
    ("out", "message"),
    [("model", "already exists; expected a new folder"), ("new", "onnx is not installed. Run: pip")],
)
def test_an_export_that_cannot_work_is_refused_at_once(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    out: str,
    message: str,
) -> None:
    """An existing folder could contain anything, even the model itself."""
    monkeypatch.setitem(sys.modules, "onnx", None)
    assert main(["export", "--model", str(save(tmp_path / "model")), "--out", str(tmp_path / out)]) == 2
    assert message in capsys.readouterr().err
