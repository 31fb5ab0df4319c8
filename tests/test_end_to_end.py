"""The whole pipeline at toy size, run by the commands of dvc.yaml: from raw text to scores and a model.

tests/test_language_without_spaces.py has the same for SentencePiece.
"""

import json
import re
from pathlib import Path

import pytest

import convs2s
from convs2s.base.files import read_json
from convs2s.config.params import Params
from pipelines.report.page import write
from pipelines.report.scores import summarize
from tests.corpus import NOISE, pairs, with_pairs
from tests.docs import pages
from tests.pipeline import run_all
from tests.report.made import write_lock
from tests.train.tiny import tiny_params

SEEDS = [1, 2]
TEST_PAIRS = 30


def toy_params(folder: Path, kind: str) -> Params:
    """Write a corpus of 400 pairs; return the tiny model's parameters. `word` adds vocabulary selection."""
    params = tiny_params(folder, max_epochs=1, max_tokens=500, batch_sentences=32)
    params = with_pairs(params, folder / "own", [*pairs(400), *NOISE], pairs(TEST_PAIRS, start=400))
    selection = {"common": 50, "candidates": 5} if kind == "word" else None
    size = {"word": 300, "bpe": 400}[kind]
    content = params.model_dump()
    content["seeds"] = SEEDS
    content["vocabulary"] = {"kind": kind, "joint": kind != "word", "source_size": size, "target_size": size}
    content["train"]["selection"] = content["translate"]["selection"] = selection
    content["translate"]["alpha"] = "tuned" if kind == "bpe" else 1.0
    content["replace"]["enabled"] = kind != "bpe"
    content["evaluate"]["ensembles"] = ["all"]
    content["model"]["max_positions"] = 256
    return Params.model_validate(content)


@pytest.mark.parametrize("kind", ["bpe", "word"])
def test_raw_text_becomes_scores_and_a_model(tmp_path: Path, kind: str) -> None:
    """Every file that the README promises must exist and agree with the others."""
    params = toy_params(tmp_path, kind)
    data = tmp_path / "data"
    run_all(params, data)
    removed = json.loads((data / "filtered" / "report.json").read_text())["removed"]
    assert removed["empty_side"] > 0
    assert removed["too_long"] > 0
    assert removed["ratio"] > 0
    metrics = json.loads((data / "evaluation" / "metrics.json").read_text())
    assert set(metrics["seeds"]) == {"1", "2"}
    assert {"mean", "std", "ensemble"} <= set(metrics)
    texts = ["plain.txt", "replaced.txt"] if kind != "bpe" else ["plain.txt"]
    for member in ("1", "2", "ensemble"):
        for text in texts:
            content = (data / "replaced" / member / text).read_text(encoding="utf-8")
            assert content.count("\n") == TEST_PAIRS
            assert text == "plain.txt" or "<unk>" not in content
    assert "BLEU" in summarize(data)
    if kind == "word":  # a flow test covers the report for bpe
        text = json.dumps(params.model_dump(mode="json"))
        (tmp_path / "params.yaml").write_text(text, encoding="utf-8")
        write_lock(tmp_path, text)
        write([str(tmp_path)], tmp_path, data / "report.html")
        assert f"{metrics['ensemble']['bleu']:.2f}" in (data / "report.html").read_text(encoding="utf-8")
    if kind == "bpe":  # as in the default preset, which the tutorial runs
        paths = re.findall(r"^\| `(data/\S+)` \|", pages.read("docs/tutorial.md"), re.MULTILINE)
        assert [path for path in paths if not (tmp_path / path).exists()] == ["data/report.html"]
    sources = (data / "raw" / "test" / "source.txt").read_text(encoding="utf-8").split("\n")[:-1]
    # The model folders must give users the translations that the stages scored. One call translates them all,
    # because with vocabulary selection a translation depends on its batch.
    folders = [data / "models" / str(seed) for seed in SEEDS]
    alpha = read_json(data / "tuned" / "ensemble" / "alpha.json")["alpha"]
    for member, model in (("1", convs2s.load(folders[0])), ("ensemble", convs2s.load(folders, alpha=alpha))):
        final = (data / "replaced" / member / texts[-1]).read_text(encoding="utf-8").split("\n")[:-1]
        assert model.translate(sources) == final
