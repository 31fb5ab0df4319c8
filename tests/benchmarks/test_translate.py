"""The benchmark of translation runs and compares the paths that it names."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from benchmarks import translate
from benchmarks.fairseq_peer import FairseqTranslator, fairseq_translator, has_fairseq
from convs2s.package.translator import load
from tests.golden import import_command, write_checkpoint, write_dictionaries
from tests.package.small_package import write_small_package


@pytest.mark.slow
def test_it_measures_all_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """All float32 paths must give the same hypotheses; fairseq, replaced by a stub, gives none."""
    source = tmp_path / "source.txt"
    source.write_text("ein Haus.\nnoch ein Hund, und eins.\n", encoding="utf-8")
    options = ["--model", str(write_small_package(tmp_path)), "--source", str(source), "--beam-sizes", "2"]
    out = tmp_path / "speed.json"
    peer = ["--fairseq", "model.pt", "dict.en.txt", "dict.de.txt"]
    monkeypatch.setattr(sys, "argv", ["translate", *options, *peer, "--rounds", "1", "--json", str(out)])
    monkeypatch.setattr(FairseqTranslator, "translate", lambda self, texts: [""] * len(texts))
    monkeypatch.setattr(translate, "fairseq_translator", lambda *_: FairseqTranslator(None, None, None, 1))
    monkeypatch.setattr(translate, "product_peaks", lambda *_: {"float32": 1e11, "bfloat16": 2e11})
    monkeypatch.setattr(translate, "fast_dtypes", lambda _: ["float32", "bfloat16"])
    monkeypatch.setattr(translate, "int8_peak", lambda: 4e11)
    translate.main()
    assert "engine bfloat16" in capsys.readouterr().out
    content = json.loads(out.read_text(encoding="utf-8"))
    paths = {row["path"]: row for row in content["results"]}
    assert paths.pop("fairseq float32")["same_hypotheses"] == 0
    assert set(paths) == {"plain float32", "engine float32", "engine bfloat16", "engine int8"}
    for row in paths.values():
        assert 0 < row["share_of_products"] < 1
        assert row["same_hypotheses"] == 1 or "float32" not in row["path"]


@pytest.mark.skipif(not has_fairseq(), reason="fairseq is not installed")
@pytest.mark.parametrize("beam_size", [1, 5])
def test_an_imported_model_gives_what_fairseq_gives(tmp_path: Path, beam_size: int) -> None:
    """Most of these random texts reach the batch's length limit, and some words are unknown."""
    sizes: dict[str, Any] = {f"max_{side}_positions": 64 for side in ("source", "target")}
    paths: dict[str, Any] = {f"{half}_embed_path": None for half in ("encoder", "decoder")}
    file = write_checkpoint(tmp_path / "model.pt", "plain", **sizes, **paths)
    dictionaries = write_dictionaries(tmp_path)
    assert import_command(file, dictionaries, tmp_path / "out", "--max-length-of", "batch") == 0
    letters = torch.Generator().manual_seed(1)
    texts = [
        " ".join(f"e{int(word)}" for word in torch.randint(2, 352, (length,), generator=letters))
        for length in [3, 9, 4, 20, 11, 7, 1, 15]
    ]
    ours = load(tmp_path / "out", "cpu", beam_size=beam_size, n_best=1, batch_sentences=3)
    wanted = fairseq_translator(file, dictionaries, beam_size, 3).translate(texts)
    assert [" ".join(best.tokens) for best, *_ in ours.translate_n_best(texts)] == wanted
