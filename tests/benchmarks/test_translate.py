"""The benchmark of translation runs, and compares what it names."""

import json
import sys
from pathlib import Path

import pytest
import torch

from benchmarks import translate
from tests.package.small_package import write_small_package


def test_it_measures_all_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A tiny model; float32 gives the same hypotheses on every path."""
    source = tmp_path / "source.txt"
    source.write_text("ein Haus.\nnoch ein Hund, und eins.\n", encoding="utf-8")
    options = ["--model", str(write_small_package(tmp_path)), "--source", str(source), "--beam-sizes", "2"]
    out = tmp_path / "speed.json"
    monkeypatch.setattr(sys, "argv", ["translate", *options, "--rounds", "1", "--json", str(out)])
    translate.main()
    assert "compiled bfloat16" in capsys.readouterr().out
    content = json.loads(out.read_text(encoding="utf-8"))
    paths = {row["path"]: row for row in content["results"]}
    wanted = {"plain float32", "fast float32", "compiled float32", "compiled bfloat16"}
    assert set(paths) - {"compiled int8"} == wanted
    assert ("compiled int8" in paths) == torch.cpu._is_vnni_supported()
    for row in paths.values():
        assert 0 < row["share_of_products"] < 1
        assert row["same_hypotheses"] == 1 or "float32" not in row["path"]
