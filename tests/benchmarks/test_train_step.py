"""The benchmark of updates runs and compares the variants that it names."""

import json
import shlex
import sys
from pathlib import Path

import pytest
import torch

from benchmarks import machine, train_step
from pipelines.preset import preset_params


def test_it_measures_all_variants_of_a_preset(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A tiny model: plain and fast layers in two precisions, each with its share of the peak."""
    params = preset_params("tatoeba-en-de")
    model = params.model.model_copy(
        update=dict.fromkeys(("embedding_size", "output_embedding_size"), 16)
        | dict.fromkeys(("encoder_widths", "decoder_widths"), [16] * 3)
    )
    monkeypatch.setattr(train_step, "preset_params", lambda _: params.model_copy(update={"model": model}))
    monkeypatch.setitem(machine.ROWS, "cpu", 256)
    monkeypatch.setattr(train_step, "keep_freed_memory", lambda: True)
    options = shlex.split("--presets tatoeba-en-de --entries 40 --rounds 2 --updates 1 --threads 1")
    options += ["--precisions", "float32", "bfloat16"]
    monkeypatch.setattr(sys, "argv", ["train_step", *options, "--json", str(tmp_path / "speed.json")])
    train_step.main()
    assert "plain float32" in capsys.readouterr().out
    content = json.loads((tmp_path / "speed.json").read_text(encoding="utf-8"))
    assert content["machine"]["torch"] == torch.__version__
    names = [row["variant"] for row in content["results"]]
    assert names == ["plain float32", "fast float32", "plain bfloat16", "fast bfloat16"]
    for row in content["results"]:
        spread = row["target_tokens"]["per_processor_second"]
        assert 0 < spread["lowest"] <= spread["median"] <= spread["highest"]
        peak = content["product_flop_per_second"][row["variant"].split()[1]]
        share = spread["median"] * row["flop_per_token"] / peak
        assert row["share_of_products"] == pytest.approx(share)
        dtype = row["variant"].split()[1]
        assert 0 < share < (1 if dtype in machine.fast_dtypes(torch.device("cpu")) else 10)  # or imitated
